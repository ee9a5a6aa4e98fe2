/** Begins the connection of a link, over a Unix socket of this machine or over TLS to another node. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { linkBufferBytes, linkKeepAliveMs, peerReadyMs } from '../../process/limits.ts'
import { clientTlsOptions, linkProtocol } from './link-security.ts'
import type { LinkSecurity } from '../../process/node-links.ts'
import type { LinkConnection } from './owner-link.ts'
import { kib } from '../../kit/limits.ts'
import type { Clock } from '../../kit/clock.ts'
import { frameType } from './frame.ts'
import { FrameReader } from './frame-reader.ts'

/** Where a worker listens for links: a Unix socket of this machine, or a port of another node. */
export type LinkAddress =
  | { readonly path: string }
  | { readonly host: string; readonly port: number }

/** All links of this machine read into this memory: what one has read is used before the next one reads. */
const readBuffer = Buffer.allocUnsafeSlow(linkBufferBytes)

/** A record of TLS holds at most this many bytes (RFC 8446 section 5.1), so a link between nodes reads that much at a time. */
const linkRecordBytesMax = 16 * kib

/**
 * @param security - of links to other nodes
 * @param take - gets what the socket reads. The bytes are only valid during the call.
 */
export function connectLink(
  address: LinkAddress,
  security: LinkSecurity | undefined,
  take: (bytes: Buffer) => void,
): LinkConnection {
  if ('path' in address) {
    const onread = { buffer: readBuffer, callback: passOn(readBuffer, take) }
    return { socket: connect({ path: address.path, onread }), isGreeted: false }
  }
  assert(security !== undefined, 'a link to another node is secured')
  // TLS may decrypt for one link while another one's bytes are in use, so each has its own memory.
  const buffer = Buffer.allocUnsafeSlow(linkRecordBytesMax)
  // The types of node:tls do not know `onread`, so this is no literal in the call.
  const options = {
    ...clientTlsOptions(security),
    host: address.host,
    port: address.port,
    onread: { buffer, callback: passOn(buffer, take) },
  }
  const socket = connectTls(options)
  socket.setNoDelay(true)
  socket.setKeepAlive(true, linkKeepAliveMs)
  socket.once('secureConnect', () => {
    if (socket.alpnProtocol !== linkProtocol)
      socket.destroy(new Error(`expected an owner that speaks ${linkProtocol}`))
  })
  return { socket, isGreeted: true }
}

function passOn(buffer: Buffer, take: (bytes: Buffer) => void): (bytes: number) => boolean {
  return (bytes) => {
    take(buffer.subarray(0, bytes))
    return true
  }
}

/** Reads host:port, or [host]:port for an IPv6 address. The text comes from a row that another node has written. */
export function hostAndPort(text: string): { readonly host: string; readonly port: number } {
  const at = text.lastIndexOf(':')
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, '$1')
  return { host, port: Number(text.slice(at + 1)) }
}

/**
 * Returns the path at which the other workers reach a worker with their links. It names the place, so a successor has the
 * same path.
 */
export function linkSocketPath(place: {
  readonly runDir: string
  readonly worker: number
}): string {
  return join(place.runDir, `w${place.worker}-link.sock`)
}

/**
 * Tries a link to another node, without a call.
 *
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
