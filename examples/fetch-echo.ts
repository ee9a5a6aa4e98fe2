/**
 * An echo bot that uses only fetch. It shows what a bot framework does.
 *
 *     ./scripts/example fetch-echo [token]
 *
 * getUpdates responds as soon as there are updates, or with none after `timeout` seconds. An update is sent again until an
 * offset above its id confirms it. This bot moves the offset after the echo, so it loses nothing if it dies in between.
 */
import { setTimeout as sleep } from 'node:timers/promises'

type Update = { update_id: number; message?: { chat: { id: number }; text?: string } }
type Failure = { error_code: number; description: string; parameters?: { retry_after?: number } }
type Answer<Result> = { ok: true; result: Result } | ({ ok: false } & Failure)

const { BOT_TOKEN = '', API_ROOT = 'http://127.0.0.1:8081' } = process.env
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort())

console.log('waiting for messages; Ctrl-C stops the bot')
let offset = 0
try {
  for (;;) {
    for (const update of await call<Update[]>('getUpdates', { offset, timeout: 50 }, stop.signal)) {
      await echo(update)
      offset = update.update_id + 1
      stop.signal.throwIfAborted()
    }
  }
} catch (error) {
  if (!stop.signal.aborted) throw error
}
// Confirms the last update handled, because no further poll does.
await call('getUpdates', { offset, limit: 1 }).catch(console.error)

async function echo({ message }: Update): Promise<void> {
  if (message?.text === undefined) return
  await call('sendMessage', { chat_id: message.chat.id, text: message.text }).catch((error) => {
    stop.signal.throwIfAborted()
    console.error(
      `${error}\nThe server needs an upstream server that receives what bots send: see examples/README.md.`,
    )
  })
}

/** Repeats a call that may succeed later. A wrong token (401) or another poller (409) is an error that ends the bot. */
async function call<T>(method: string, parameters: object, signal?: AbortSignal): Promise<T> {
  const url = `${API_ROOT}/bot${BOT_TOKEN}/${method}`
  const headers = { 'Content-Type': 'application/json' }
  const post = { method: 'POST', headers, body: JSON.stringify(parameters) }
  for (;;) {
    const answer: Answer<T> = await fetch(url, { ...post, signal: signal ?? null })
      .then(async (response) => JSON.parse(await response.text()))
      .catch((error) => ({ ok: false, error_code: 503, description: String(error) }))
    if (answer.ok) return answer.result
    const problem = `${method}: ${answer.error_code} ${answer.description}`
    stop.signal.throwIfAborted()
    if (answer.error_code < 500 && answer.error_code !== 429) throw new Error(problem)
    console.error(problem)
    await sleep(1000 * (answer.parameters?.retry_after ?? 1), undefined, { signal: stop.signal })
  }
}
