/** A local webhook that receives the deliveries of many bots, each at a separate path, and records them. */
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { KeyPair } from '../network/certificates.ts'
import type { EndingTest } from '../server/server.ts'

/** An update as a bot receives it, with the fields that tests use. */
export interface ReceivedUpdate {
  readonly update_id: number
  readonly message?: Readonly<Record<string, unknown>>
}

export interface Delivery {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly update: ReceivedUpdate
  /** When the delivery was complete. */
  readonly atMs: number
}

export type Receiver = (delivery: Delivery, response: ServerResponse) => void

export interface WebhookSink {
  readonly port: number
  readonly deliveries: readonly Delivery[]
  /** The number of connections in total, and the most at a time. */
  readonly connections: { total: number; most: number }
  /** Uses another certificate from now on; open connections are closed, so that all clients see it. */
  showCertificate(identity: KeyPair): void
  url(path: string): string
  /** Resolves when there are that many deliveries. */
  atLeast(count: number): Promise<void>
}

/** Responds with 200 unless a receiver responds otherwise. With a certificate it uses https, as localhost. */
export async function startSink(
  t: EndingTest,
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
  // Node's default of 5 s would hide connections that the other side should have closed.
  server.keepAliveTimeout = 120_000
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    connections.total++
    open.add(socket)
    // The end of a connection that was closed before this one was opened may be read slightly later.
    setImmediate(() => {
      connections.most = Math.max(connections.most, open.size)
    })
    socket.once('end', () => open.delete(socket))
    socket.once('close', () => open.delete(socket))
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 })
  await once(server, 'listening')
  t.after(async () => {
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
