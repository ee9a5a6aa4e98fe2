/** A TCP server of a test, whose connections end with it. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { portOf } from '../kit/port.ts'

export interface RawServer {
  readonly port: number
  /** The open connections. */
  readonly sockets: ReadonlySet<Socket>
}

/** Listens on 127.0.0.1, and calls `serve` with each connection. */
export async function startRawServer(
  t: Pick<TestContext, 'after'>,
  serve: (socket: Socket) => void,
): Promise<RawServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: portOf(server), sockets }
}
