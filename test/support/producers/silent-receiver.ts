/**
 * A webhook that does not respond to the first delivery of an update. The update must come again, whatever happens to
 * the server in between: it leaves its queue when the webhook responds, not when it is sent.
 *
 *     const receiver = await startSilentReceiver(t, server, botId)
 *     await receiver.withhold(server, 'at a kill')
 *     ...
 *     await receiver.answer(server, 'at a kill')
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { RegisteredBot, Server } from '../server/server.ts'
import { pendingOf, pushTexts } from '../bots/text-messages.ts'
import { until } from '../kit/until.ts'
import { startSink } from '../webhook/webhook-sink.ts'

export async function startSilentReceiver(
  t: TestContext,
  server: Server,
  botId: number,
): Promise<SilentReceiver> {
  const registered = await server.register(botId)
  const receiver = new SilentReceiver(registered)
  const sink = await startSink(t, ({ update }, response) => {
    if (receiver.take(update.message?.['text']) > 1) response.end()
  })
  const { status, text } = await server.call(registered.token, 'setWebhook', { url: sink.url('/') })
  assert.equal(status, 200, text)
  return receiver
}

export class SilentReceiver {
  readonly #registered: RegisteredBot
  /** Number of deliveries of each text. */
  readonly #times = new Map<unknown, number>()

  constructor(registered: RegisteredBot) {
    this.#registered = registered
  }

  /** Counts a delivery and returns the number of deliveries so far. */
  take(text: unknown): number {
    const times = (this.#times.get(text) ?? 0) + 1
    this.#times.set(text, times)
    return times
  }

  /** Pushes an update; resolves when its delivery waits for a response. */
  async withhold(server: Server, text: string): Promise<void> {
    await pushTexts(server, this.#registered, [text])
    await until(() => this.#times.has(text))
  }

  /** Resolves when the update has come again and left the queue. */
  async answer(server: Server, text: string): Promise<void> {
    await until(async () => (await pendingOf(server, this.#registered)) === 0)
    assert.equal(this.#times.get(text), 2, `how often "${text}" came`)
  }
}
