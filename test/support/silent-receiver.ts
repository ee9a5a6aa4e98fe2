/**
 * A webhook that does not answer an update when it comes for the first time. It must come again, whatever becomes of the
 * server meanwhile: an update leaves its queue when it is answered, not when it is sent.
 *
 *     const receiver = await startSilentReceiver(t, server, botId)
 *     await receiver.withhold(server, 'at a kill')
 *     ...
 *     await receiver.answer(server, 'at a kill')
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { RegisteredBot, Server } from './server.ts'
import { pendingOf, pushTexts } from './text-messages.ts'
import { untilInTheCrowd as until } from './until.ts'
import { startSink } from './webhook-sink.ts'

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
  /** How often each text has come. */
  readonly #times = new Map<unknown, number>()

  constructor(registered: RegisteredBot) {
    this.#registered = registered
  }

  /** How often it has come now. */
  take(text: unknown): number {
    const times = (this.#times.get(text) ?? 0) + 1
    this.#times.set(text, times)
    return times
  }

  /** Pushes an update; resolves when its delivery waits for an answer. */
  async withhold(server: Server, text: string): Promise<void> {
    await pushTexts(server, this.#registered, [text])
    await until(() => this.#times.has(text))
  }

  /** Resolves when it has come again and is gone from the queue. */
  async answer(server: Server, text: string): Promise<void> {
    await until(async () => (await pendingOf(server, this.#registered)) === 0)
    assert.equal(this.#times.get(text), 2, `how often "${text}" came`)
  }
}
