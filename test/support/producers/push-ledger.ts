/**
 * Clients that push to one bot and poll it, through failures of every kind, and what they know about each push:
 *
 *   accepted   200: received exactly once, under the id that the response named
 *   refused    an error that says that nothing was stored: never received
 *   unknown    no response, or one that says so: received once or never
 *
 * A push is not repeated, so that nothing hides what became of it.
 */
import assert from 'node:assert/strict'
import {
  type Answer,
  type EndingTest,
  type RegisteredBot,
  send,
  type Server,
} from '../server/server.ts'
import { until } from '../kit/until.ts'

/** Of one bot. */
const pushers = 2
/** Enough that the machine has CPU left for what happens to the servers. */
const pauseMs = 50
const pollTimeoutS = 2
const settledMsMax = 60_000

/** A server, or something that passes requests on to one. */
export type Entrance = Pick<Server, 'admin' | 'botUrl'>

interface Received {
  readonly update_id: number
  readonly message: { readonly number: number }
}

export class PushLedger {
  readonly bot: RegisteredBot
  readonly #server: () => Entrance
  readonly #accepted = new Map<number, number>()
  readonly #refused = new Set<number>()
  readonly #unknown = new Set<number>()
  readonly #received: Received[] = []
  /** Responses that no client should get. */
  readonly #wrong: string[] = []
  /** Polls that got an error, or no response. */
  readonly failedPolls: string[] = []
  #number = 0
  #isPushing = true
  #isPolling = true
  readonly #running: Promise<unknown>[]

  /** Begins at once, and ends with the test at the latest. */
  constructor(t: EndingTest, bot: RegisteredBot, server: () => Entrance) {
    this.bot = bot
    this.#server = server
    this.#running = [...Array.from({ length: pushers }, () => this.#push()), this.#poll()]
    t.after(() => this.#end())
  }

  get acceptedCount(): number {
    return this.#accepted.size
  }

  get refusedCount(): number {
    return this.#refused.size
  }

  get counts(): string {
    const { size } = this.#accepted
    return `${size} accepted, ${this.#refused.size} refused, ${this.#unknown.size} unknown`
  }

  /** Resolves when pushes are accepted that began after this call. */
  async recovered(): Promise<void> {
    const from = this.#number
    await until(() => [...this.#accepted.keys()].some((number) => number > from), settledMsMax)
  }

  /** Ends the clients, and asserts what is written above. */
  async check(): Promise<void> {
    this.#isPushing = false
    await Promise.all(this.#running.slice(0, -1))
    const { status, text, body } = await this.#server().admin(
      'POST',
      `/v1/bots/${this.bot.botId}/updates`,
      { message: { number: -1 } },
    )
    assert.equal(status, 200, text)
    await until(() => this.#received.at(-1)?.update_id === body.update_id, settledMsMax)
    await this.#end()
    assert.deepEqual(this.#wrong, [])
    this.#received.pop()
    const ids = new Map<number, number>()
    let last = 0
    for (const { update_id: id, message } of this.#received) {
      assert(id > last, `update ${id} was received after ${last}`)
      last = id
      assert(!ids.has(message.number), `push ${message.number} was stored twice`)
      assert(!this.#refused.has(message.number), `push ${message.number} was refused, and stored`)
      ids.set(message.number, id)
    }
    for (const [number, id] of this.#accepted) {
      assert.equal(ids.get(number), id, `push ${number} was accepted as ${id}`)
    }
  }

  async #end(): Promise<void> {
    this.#isPushing = false
    this.#isPolling = false
    await Promise.all(this.#running)
  }

  async #push(): Promise<void> {
    while (this.#isPushing) {
      const number = this.#number++
      const answer = await this.#try(() => {
        const path = `/v1/bots/${this.bot.botId}/updates`
        return this.#server().admin('POST', path, { message: { number } })
      })
      const code: unknown = answer?.body?.error?.code
      if (answer?.status === 200) this.#accepted.set(number, answer.body.update_id)
      else if (answer === undefined || code === 'OUTCOME_UNKNOWN') this.#unknown.add(number)
      else this.#refused.add(number)
      this.#judge(answer)
      await pause()
    }
  }

  async #poll(): Promise<void> {
    let offset = 0
    while (this.#isPolling) {
      const { token } = this.bot
      const answer = await this.#try(() => {
        const url = `${this.#server().botUrl}/bot${token}/getUpdates?offset=${offset}&timeout=${pollTimeoutS}`
        return send({ method: 'GET', url })
      })
      this.#judge(answer)
      if (answer?.status !== 200) {
        if (this.#isPolling) this.failedPolls.push(answer?.text ?? 'no response')
        await pause()
        continue
      }
      this.#received.push(...answer.body.result)
      offset = (this.#received.at(-1)?.update_id ?? -1) + 1
    }
  }

  #judge(answer: Answer | undefined): void {
    if (answer === undefined || answer.status === 200) return
    const isTimed = answer.headers['retry-after'] !== undefined
    if (answer.status !== 503 || !isTimed) this.#wrong.push(`${answer.status} ${answer.text}`)
  }

  async #try(call: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await call()
    } catch {
      return undefined
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, pauseMs))
}
