/** Where a scenario lets a client look for its server: a fake server, nobody, or a program that never takes part in TLS as it should. */
import { createServer, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { makeCertificate } from '../../test/support/network/certificates.ts'

/** A place other than a fake server; README.md explains them. */
export type OtherPlace = 'nobody' | 'mute TLS' | 'reset TLS' | 'wrong certificate'

/** An open place. */
export interface OpenPlace {
  readonly url: string
  close(): Promise<void>
}

/** Opens a place on a free port of the loopback interface. */
export async function openPlace(place: OtherPlace): Promise<OpenPlace> {
  const sockets = new Set<Socket>()
  const server = serverAt[place]()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  if (place !== 'nobody') return { url: `https://127.0.0.1:${port}`, close }
  await close()
  return { url: `http://127.0.0.1:${port}`, close: () => Promise.resolve() }
}

const serverAt: Readonly<Record<OtherPlace, () => Server>> = {
  nobody: () => createServer(),
  'mute TLS': () => createServer((socket) => socket.resume()),
  'reset TLS': () => createServer((socket) => socket.once('data', () => socket.resetAndDestroy())),
  'wrong certificate': () =>
    createTlsServer(makeCertificate('another.example')).on('tlsClientError', () => undefined),
}
