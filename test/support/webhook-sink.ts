/** A local webhook: takes the deliveries of many bots, each at its own path, and remembers them. */
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { KeyPair } from './certificates.ts'

/** An update as a bot gets it, as far as tests look into it. */
export interface ReceivedUpdate {
  readonly update_id: number
  readonly message?: Readonly<Record<string, unknown>>
}

export interface Delivery {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly update: ReceivedUpdate
  /** When it was there as a whole. */
  readonly atMs: number
}

export type Receiver = (delivery: Delivery, response: ServerResponse) => void

export interface WebhookSink {
  readonly port: number
  readonly deliveries: readonly Delivery[]
  /** How many connections there were, and at most at a time. */
  readonly connections: { total: number; most: number }
  /** From now on it shows another certificate; connections are closed, so that all see it. */
  showCertificate(identity: KeyPair): void
  url(path: string): string
  /** Resolves when there are that many deliveries. */
  atLeast(count: number): Promise<void>
}

/** Answers 200 unless a receiver says otherwise; speaks https, as localhost, where it has a certificate. */
export async function startSink(
  t: TestContext,
  receive: Receiver = accept,
  identity?: KeyPair,
): Promise<WebhookSink> {
  const deliveries: Delivery[] = []
  const sockets = new Set<Socket>()
  const open = new Set<Socket>()
  const connections = { total: 0, most: 0 }
  const onRequest: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => undefined)
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const { url = '', headers } = request
      const delivery = { path: url, headers, text, update: JSON.parse(text), atMs: Date.now() }
      deliveries.push(delivery)
      server.emit('delivery')
      receive(delivery, response)
    })
  }
  const secure = identity === undefined ? undefined : createSecureServer(identity, onRequest)
  const server = secure ?? createServer(onRequest)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    connections.total++
    open.add(socket)
    // One that was closed before this one was opened may have its end read a little later.
    setImmediate(() => {
      connections.most = Math.max(connections.most, open.size)
    })
    socket.once('end', () => open.delete(socket))
    socket.once('close', () => open.delete(socket))
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 })
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('expected a port')
  const origin = identity === undefined ? 'http://127.0.0.1' : 'https://localhost'
  return {
    port: address.port,
    deliveries,
    connections,
    showCertificate(next) {
      secure?.setSecureContext(next)
      for (const socket of sockets) socket.destroy()
    },
    url: (path) => `${origin}:${address.port}${path}`,
    async atLeast(count) {
      while (deliveries.length < count) await once(server, 'delivery')
    },
  }
}

function accept(_delivery: Delivery, response: ServerResponse): void {
  response.end()
}
