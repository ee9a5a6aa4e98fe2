/** A server whose responses the test gives, and a `PostboteClient` that calls it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import type { ClientOptions, Retry } from '../../../clients/typescript/client-options.ts'
import { PostboteClient } from '../../../clients/typescript/postbote-client.ts'
import { FakeClock, settle } from '../kit/fake-clock.ts'

export const producerKey = 'very-secret-admin-key'

interface Received {
  readonly line: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A server that sends the given responses one after the other, and a client that calls it. */
export async function answeringServer(
  t: TestContext,
  answers: readonly Answer[],
  options: Partial<ClientOptions> = {},
) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void take(request, response)
  })
  // A request that is cut off in the middle has no body.
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request).catch(() => '')
    const { method, url, headers } = request
    const answer = answers[received.length] ?? refused('INTERNAL', 500)
    received.push({ line: `${method} ${url}`, headers, body })
    answer(response, request)
    server.emit('received')
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(address !== null && typeof address === 'object')
  const clock = new FakeClock()
  const url = `http://127.0.0.1:${address.port}`
  const retried: Retry[] = []
  const client = new PostboteClient(
    {
      url,
      key: producerKey,
      onRetry: (retry) => {
        retried.push(retry)
        // Time passes immediately; the test checks how long it would have been.
        void settle().then(() => clock.advance(retry.delayMs))
      },
      ...options,
    },
    { clock, random: () => 0.5 },
  )
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const untilReceived = async (count: number): Promise<void> => {
    while (received.length < count) await once(server, 'received')
  }
  return { url, client, clock, received, retried, untilReceived }
}

export function json(body: object, status = 200, headers: Record<string, string> = {}): Answer {
  return (response) => response.writeHead(status, headers).end(JSON.stringify(body))
}

export const cut: Answer = (_response, request) => void request.socket.destroy()
export const html: Answer = (response) => response.writeHead(502).end('<html>')
export const silence: Answer = () => undefined
export const stored = json({ update_id: 5 })
export const refused = (code: string, status: number, headers = {}): Answer =>
  json({ error: { code, message: 'no' } }, status, headers)
