/** Where a scenario lets a client look for its server: behind TLS, nobody, or a program that does not take part in TLS as it should. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { freePort } from '../../test/support/kit/port.ts'
import { makeCertificate } from '../../test/support/network/certificates.ts'
import { trusted } from './authority.ts'

/** A place other than a fake server; README.md explains them. */
export type OtherPlace = 'TLS' | 'nobody' | 'mute TLS' | 'reset TLS' | 'wrong certificate'

/** An open place. */
export interface OpenPlace {
  readonly url: string
  close(): Promise<void>
}

/**
 * Opens a place on a free port of the loopback interface.
 *
 * @param fakeUrl - The fake server, which is behind the place `TLS`.
 */
export async function openPlace(place: OtherPlace, fakeUrl: string): Promise<OpenPlace> {
  // The kernel gives this port to nobody else meanwhile, as it might one that was closed.
  if (place === 'nobody') {
    return { url: `http://127.0.0.1:${await freePort()}`, close: () => Promise.resolve() }
  }
  const sockets = new Set<Socket>()
  const server = serverAt[place](fakeUrl)
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
  return { url: `https://127.0.0.1:${port}`, close }
}

const serverAt: Readonly<Record<Exclude<OtherPlace, 'nobody'>, (fakeUrl: string) => Server>> = {
  TLS: (fakeUrl) =>
    createTlsServer(trusted, (socket) => {
      const { hostname, port } = new URL(fakeUrl)
      const behind = connect(Number(port), hostname)
      socket.pipe(behind).pipe(socket)
      for (const [from, to] of [
        [socket, behind],
        [behind, socket],
      ] as const) {
        from.on('error', () => undefined)
        from.on('close', () => to.destroy())
      }
    }),
  'mute TLS': () => createServer((socket) => socket.resume()),
  'reset TLS': () => createServer((socket) => socket.once('data', () => socket.resetAndDestroy())),
  'wrong certificate': () =>
    createTlsServer(makeCertificate('another.example')).on('tlsClientError', () => undefined),
}
