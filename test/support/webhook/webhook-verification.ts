/** For tests of setWebhook: endpoints that let a verification wait, and uploads of a certificate. */
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { startRawServer } from '../network/raw-server.ts'

export interface HangingEndpoint {
  readonly port: number
  /** The open connections. */
  readonly sockets: ReadonlySet<Socket>
  /** Connects every connection, including those that hang, to this port from now on. */
  passOn(port: number): void
}

/** Accepts connections and never sends anything. */
export async function startHanging(t: TestContext): Promise<HangingEndpoint> {
  const waiting = new Map<Socket, Buffer[]>()
  let onwardPort: number | undefined
  const { port, sockets } = await startRawServer(t, (socket) => {
    const early: Buffer[] = []
    const keep = (chunk: Buffer): void => void early.push(chunk)
    waiting.set(socket, early)
    // Without a listener for data, the socket would not notice the other side's end.
    socket.on('data', keep)
    socket.once('onward', () => socket.off('data', keep))
    socket.once('close', () => waiting.delete(socket))
    if (onwardPort !== undefined) passOn(socket, early, onwardPort)
  })
  return {
    port,
    sockets,
    passOn(to) {
      onwardPort = to
      for (const [socket, early] of waiting) passOn(socket, early, to)
    },
  }
}

function passOn(socket: Socket, early: readonly Buffer[], port: number): void {
  const onward = connect(port, '127.0.0.1')
  socket.emit('onward')
  for (const chunk of early) onward.write(chunk)
  onward.on('error', () => socket.destroy())
  onward.once('close', () => socket.destroy())
  socket.once('close', () => onward.destroy())
  socket.pipe(onward).pipe(socket)
}

/** The two forms in which clients upload a certificate. */
export function uploadOf(
  url: string,
  pem: string,
  isAttached: boolean,
): { type: string; body: string } {
  const parts = [
    ['name="url"', url],
    ...(isAttached ? [['name="certificate"', 'attach://pem1']] : []),
    [`name="${isAttached ? 'pem1' : 'certificate'}"; filename="c.pem"`, pem],
  ]
  const body = parts
    .map(([names, text]) => `--b\r\nContent-Disposition: form-data; ${names}\r\n\r\n${text}\r\n`)
    .join('')
  return { type: 'multipart/form-data; boundary=b', body: `${body}--b--\r\n` }
}
