/** Tries a link to another node, without a call. */
import type { Clock } from '../../kit/clock.ts'
import { peerReadyMs } from '../../process/limits.ts'
import type { LinkSecurity } from '../../process/node-links.ts'
import { connectLink, hostAndPort } from './connect-link.ts'
import { frameType } from './frame.ts'
import { FrameReader } from './frame-reader.ts'

/**
 * @param address - as host:port
 * @returns `ready` if the nodes recognize each other; `refused` if they do not, because their keys differ;
 *   `unreachable` if that is not known
 */
export function probeLink(
  clock: Clock,
  address: string,
  security: LinkSecurity,
): Promise<'ready' | 'refused' | 'unreachable'> {
  return new Promise((resolve) => {
    const reader = new FrameReader(({ type }) => {
      if (type === frameType.ready) finish('ready')
    })
    const { socket } = connectLink(hostAndPort(address), security, (bytes) => reader.read(bytes))
    let isConnected = false
    socket.once('connect', () => (isConnected = true))
    const late = clock.after(peerReadyMs, () => finish('unreachable'))
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      // A node that is just ending resets its connections.
      const isRefusal = isConnected && code !== undefined && code !== 'ECONNRESET'
      finish(isRefusal ? 'refused' : 'unreachable')
    })
    socket.on('close', () => finish('unreachable'))
    function finish(result: 'ready' | 'refused' | 'unreachable'): void {
      late.cancel()
      resolve(result)
      socket.destroy()
    }
  })
}
