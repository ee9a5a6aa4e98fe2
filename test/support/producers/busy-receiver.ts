/**
 * A bot program that receives by webhook, and its producer, which pushes all the time while the server is disturbed.
 *
 *     const receiver = await startBusyReceiver(t, framework, server)
 *     const stopPushing = receiver.pushAllTheTime('a kill')
 *     ...
 *     await stopPushing({ isSudden: true })
 *
 * Everything that was pushed must then have arrived once and in order. Only if a process of the server was killed may
 * the order go back, once: what was delivered after its last write comes again.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { PostboteClient } from '../../../clients/typescript/postbote-client.ts'
import type { Framework } from '../../clients/frameworks.ts'
import { type FrameworkBot, startBot } from '../bots/framework-bot.ts'
import { wait } from '../server/database.ts'
import type { Server } from '../server/server.ts'
import { messageOf } from '../bots/text-messages.ts'
import { until } from '../kit/until.ts'

/** The most updates in flight, so that only a few are left at the end. */
const aheadMax = 5
/** Between two pushes. Of several frameworks, there is still always one with a delivery in progress. */
const pauseMs = 10

export async function startBusyReceiver(
  t: TestContext,
  framework: Framework,
  server: Server,
): Promise<BusyReceiver> {
  const { botId, token } = await server.register()
  const { privateUrl: url, key } = server
  const client = new PostboteClient({ url, key, retries: 100, retryDelayMsMax: 1_000 })
  t.after(() => client.close())
  // A client that has never reached its server would not wait until it is back.
  await client.getBot(botId)
  const task = { apiRoot: server.botUrl, token, mode: 'webhook' } as const
  return new BusyReceiver(await startBot(t, framework, task), client, botId)
}

export class BusyReceiver {
  readonly #bot: FrameworkBot
  readonly #client: PostboteClient
  readonly #botId: number

  constructor(bot: FrameworkBot, client: PostboteClient, botId: number) {
    this.#bot = bot
    this.#client = client
    this.#botId = botId
  }

  /** Pushes until the returned function is called, which resolves when everything has arrived. */
  pushAllTheTime(what: string): (end: { readonly isSudden: boolean }) => Promise<void> {
    const before = this.#bot.texts.length
    const pushed: string[] = []
    const over = new AbortController()
    const push = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const text = `${pushed.length + 1} at ${what}`
        await this.#client.push(this.#botId, { message: messageOf(text) })
        pushed.push(text)
        const behind = pushed.at(-aheadMax)
        if (behind !== undefined) await this.#bot.hear(behind)
        await wait(pauseMs)
      }
    }
    const pushing = push()
    // A test that has failed does not call the returned function.
    pushing.catch(() => undefined)
    return async ({ isSudden }) => {
      over.abort()
      await pushing
      await until(async () => (await this.#client.getBot(this.#botId)).pendingCount === 0)
      await this.#bot.hear(pushed.at(-1) ?? '')
      const texts = this.#bot.texts.slice(before)
      assert.deepEqual([...new Set(texts)], pushed)
      assert(timesBack(texts, pushed) <= (isSudden ? 1 : 0), texts.join(', '))
    }
  }

  async stop(): Promise<void> {
    await this.#bot.stop()
    assert.equal(this.#bot.webhook?.pending_update_count, 0)
  }
}

function timesBack(texts: readonly string[], all: readonly string[]): number {
  const places = texts.map((text) => all.indexOf(text))
  return places.filter((place, nth) => nth > 0 && place <= (places[nth - 1] ?? 0)).length
}
