import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { WebhookSetup } from './webhook-setup.ts'
import { portOf } from '../kit/port.ts'
import { startRawServer } from '../network/raw-server.ts'

export interface Received {
  readonly request: IncomingMessage
  readonly body: string
}

export type Answer = (response: ServerResponse, received: Received, index: number) => void

export async function endpoint(
  context: TestContext,
  answer: Answer,
): Promise<{ readonly url: string; readonly received: Received[]; readonly server: Server }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const one = { request, body }
      answer(response, one, received.push(one) - 1)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${portOf(server)}/hook?x=1`, received, server }
}

export function stopAfter(context: TestContext, setup: WebhookSetup): WebhookSetup {
  context.after(async () => {
    await setup.dispatcher.close()
    assert.equal(setup.gate.open, 0, 'every connection is given back to the server-wide gate')
  })
  return setup
}

export function idOf(one: Received): number {
  return Number(/^\{"update_id":(\d+),/.exec(one.body)?.[1])
}

export const ok: Answer = (response) => void response.end()

/** A raw server that runs `misbehave` for each request, and responds correctly from the `untilCount`th on. */
export async function rawEndpoint(
  context: TestContext,
  misbehave: (socket: Socket) => void,
  untilCount = 1,
): Promise<{ readonly url: string; readonly sockets: ReadonlySet<Socket> }> {
  let count = 0
  const { port, sockets } = await startRawServer(context, (socket) => {
    socket.on('data', () => {
      if (count++ < untilCount) misbehave(socket)
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
  })
  return { url: `http://127.0.0.1:${port}/`, sockets }
}
