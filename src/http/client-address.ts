/**
 * The address under which a request is counted: the client's own, or the one that a reverse proxy reports.
 *
 * X-Real-Ip is believed only if the connection comes from a reserved address or a Unix socket: a proxy is in the server's
 * own network, and anybody on the internet can write a header. IPv6 counts per /64, because one customer gets a /64; an
 * IPv4 address within IPv6 counts as IPv4.
 */
import { isIP } from 'node:net'
import { compileBlocklist, isBlocked } from './blocklist.ts'
import { ipAddressBytes, unmappedBytes } from './ip-address.ts'

/** The address of all clients of a Unix socket whose proxy reports no client. They are counted as one. */
export const unixClient = 'unix'

export function clientAddress(socketAddress: string | undefined, realIp: unknown): string {
  const isUnix = isUnixSocket(socketAddress)
  const own = isUnix ? unixClient : countedAs(socketAddress)
  if (!isAddress(realIp)) return own
  return isUnix || isReserved(socketAddress) ? countedAs(realIp.trim()) : own
}

/** Returns whether many clients may share the address: there may be a proxy that does not report its clients. */
export function isShared(socketAddress: string | undefined, realIp: unknown): boolean {
  return !isAddress(realIp) && (isUnixSocket(socketAddress) || isReserved(socketAddress))
}

function isUnixSocket(socketAddress: string | undefined): socketAddress is undefined | '' {
  return socketAddress === undefined || socketAddress === ''
}

function isAddress(header: unknown): header is string {
  return typeof header === 'string' && isIP(header.trim()) !== 0
}

function countedAs(address: string): string {
  const parsed = ipAddressBytes(address)
  if (parsed === undefined) return address
  const bytes = unmappedBytes(parsed)
  if (bytes.length === 4) return bytes.join('.')
  const network = [0, 2, 4, 6].map((at) =>
    (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16),
  )
  return `${network.join(':')}::/64`
}

/** The blocklist of webhooks without the changes of --allow-cidr and --block-cidr. */
const reserved = compileBlocklist({ local: false, block: [], allow: [] })

function isReserved(address: string): boolean {
  // Webhooks block text that is not an address, but such text is not part of anybody's own network.
  return ipAddressBytes(address) !== undefined && isBlocked(reserved, address)
}
