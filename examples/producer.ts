/**
 * A minimal platform: it pushes what you type as messages of a user named Ada and prints what the bot says.
 *
 *     ./scripts/example producer [token]
 *
 * It pushes with postbote/client. It is also the server that `--upstream` names, so it receives what the bots send.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { PostboteClient } from 'postbote/client'

const { ADMIN_URL, ADMIN_KEY = '', BOT_TOKEN } = process.env
const { PLATFORM_PORT = '8090' } = process.env

let messageId = 0
const chat = { id: 1, type: 'private', first_name: 'Ada' }
const from = { id: 1, is_bot: false, first_name: 'Ada' }

function newMessage(said: string): object {
  return { message_id: ++messageId, date: Math.floor(Date.now() / 1000), chat, from, text: said }
}

/** This platform's bot API has one method, sendMessage, which takes a JSON body. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const read: Promise<{ text?: string }> = text(request).then((body) => JSON.parse(body))
  const { text: said } = await read.catch(() => ({ text: undefined }))
  const isKnown = request.url?.endsWith('/sendMessage') === true && said !== undefined
  if (isKnown) console.log(`bot: ${said}`)
  const failure = { ok: false, error_code: 404, description: 'Not Found: expected sendMessage' }
  const body = isKnown ? { ok: true, result: newMessage(said) } : failure
  response.writeHead(isKnown ? 200 : 404, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(body))
}

const platform = createServer((request, response) => void answer(request, response))
platform.listen(Number(PLATFORM_PORT), '127.0.0.1')
await once(platform, 'listening')

const client = new PostboteClient({
  url: ADMIN_URL ?? 'http://127.0.0.1:8082',
  key: ADMIN_KEY,
  onRetry: ({ error, delayMs }) => console.error(`${error.message}: retry in ${delayMs | 0} ms`),
})
const token =
  BOT_TOKEN ?? (await client.createBot({ firstName: 'Echo', username: 'echo_bot' })).token
const botId = Number(token.split(':')[0])

// Push one update with a single call, then everything that is typed over one connection.
await client.push(botId, { message: newMessage('hello') })
const stream = client.openStream()
const lines = createInterface({ input: process.stdin }).on('line', (line) => {
  stream.push(botId, { message: newMessage(line) }).catch(console.error)
})
console.log('type messages to the bot; Ctrl-C stops the producer')

await Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)))
lines.close()
platform.close().closeIdleConnections()
await client.close()
