/** Begins the connection of a link, over a Unix socket of this machine or over TLS to another node. */
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { linkBufferBytes, linkKeepAliveMs } from '../../process/limits.ts'
import type { LinkAddress } from './link-address.ts'
import { clientTlsOptions, linkProtocol } from './link-security.ts'
import type { LinkSecurity } from '../../process/node-links.ts'
import type { LinkConnection } from './owner-link.ts'
import { kib } from '../../kit/limits.ts'

/** All links of this machine read into this memory: what one has read is used before the next one reads. */
const readBuffer = Buffer.allocUnsafeSlow(linkBufferBytes)

export interface ConnectLinkOptions {
  readonly address: LinkAddress
  readonly security: LinkSecurity | undefined
  /** Gets what the socket reads. The bytes are only valid during the call. */
  readonly take: (bytes: Buffer) => void
}

/** A record of TLS holds at most this many bytes (RFC 8446 section 5.1), so a link between nodes reads that much at a time. */
const linkRecordBytesMax = 16 * kib

export function connectLink({ address, security, take }: ConnectLinkOptions): LinkConnection {
  if ('path' in address) {
    const onread = { buffer: readBuffer, callback: passOn(readBuffer, take) }
    return { socket: connect({ path: address.path, onread }), isGreeted: false }
  }
  if (security === undefined) throw new Error('expected the security of links to other nodes')
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
