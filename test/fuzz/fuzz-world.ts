/** The server's bots for a run: steady ones, loose ones that get updates all the time, and one that must not be affected. */
import assert from 'node:assert/strict'
import { RawPushStream } from '../support/producers/raw-push-stream.ts'
import type { RegisteredBot, Server } from '../support/server/server.ts'
import type { NamedBot, SteadyBot, World } from './wire-case.ts'

/** More than one response holds. */
const steadyUpdates = 120
const steadyBots = 6
const looseBots = 16

/** The ids are constant, so that a seed always produces the same bytes except for the secrets. */
export async function makeWorld(server: Server): Promise<World> {
  const steady: SteadyBot[] = []
  for (let nth = 0; nth < steadyBots; nth++) {
    const bot = await server.register(100_000_000 + nth)
    const updates = await pushed(server, bot, steadyUpdates)
    const { body } = await server.call(bot.token, 'getMe')
    steady.push({ ...bot, updates, me: JSON.stringify(body.result) })
  }
  const loose: NamedBot[] = []
  for (let nth = 0; nth < looseBots; nth++) loose.push(await server.register(200_000_000 + nth))
  return { steady, loose, adminKey: server.key }
}

async function pushed(server: Server, { botId }: RegisteredBot, count: number): Promise<string[]> {
  const stream = new RawPushStream(server)
  const texts = Array.from({ length: count }, (_, nth) => `"message":{"text":"${nth}"}`)
  const results = await Promise.all(
    texts.map((text) => stream.push({ bot_id: botId }, `{${text}}`)),
  )
  await stream.end()
  return results.map((result, nth) => `{"update_id":${result?.update_id},${texts[nth]}}`)
}

/** Pushes updates to the loose bots, because the poll of a bot without updates may wait. */
export class Feeder {
  readonly #stream: RawPushStream
  readonly #bots: readonly NamedBot[]

  constructor(server: Server, { loose }: World) {
    this.#stream = new RawPushStream(server)
    this.#bots = loose
  }

  async feed(): Promise<void> {
    await Promise.all(
      this.#bots.map(async ({ botId }) => {
        const result = await this.#stream.push({ bot_id: botId }, { message: { text: 'food' } })
        assert.ok(result?.update_id !== undefined, 'a good push failed')
      }),
    )
  }

  async end(): Promise<void> {
    assert.equal(await this.#stream.end(), true)
  }
}

/** A well-behaved bot that must be served as if it were alone: each of its updates comes once, in order. */
export class ControlBot {
  readonly #server: Server
  readonly #bot: RegisteredBot
  #offset = 0
  #pushed = 0

  constructor(server: Server, bot: RegisteredBot) {
    this.#server = server
    this.#bot = bot
  }

  async check(): Promise<void> {
    const text = `update ${this.#pushed++}`
    const id = await this.#server.push(this.#bot.botId, { message: { text } })
    const { status, body } = await this.#server.call(this.#bot.token, 'getUpdates', {
      offset: this.#offset,
    })
    const expected = [{ update_id: id, message: { text } }]
    assert.deepEqual([status, body], [200, { ok: true, result: expected }])
    this.#offset = (id ?? 0) + 1
  }
}
