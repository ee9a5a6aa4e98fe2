/**
 * The address that a request is counted under: the client's, or what a reverse proxy says it is.
 *
 * X-Real-Ip is believed only where the connection comes from a reserved address or a Unix socket: a proxy stands in
 * the own network, and anybody on the internet can write a header. IPv6 counts per /64, since that is what one
 * customer is given; an IPv4 address inside IPv6 counts as itself.
 */
import { isIP } from 'node:net'
import { compileBlocklist, isBlocked } from '../net/blocklist.ts'
import { ipAddressBytes, unmappedBytes } from '../net/ip-address.ts'

/** Clients without any address: a Unix socket whose proxy names nobody. They share one count. */
export const unixClient = 'unix'

export function clientAddress(socketAddress: string | undefined, realIp: unknown): string {
  const isUnix = isUnixSocket(socketAddress)
  const own = isUnix ? unixClient : countedAs(socketAddress)
  if (!isAddress(realIp)) return own
  return isUnix || isReserved(socketAddress) ? countedAs(realIp.trim()) : own
}

/** Whether many clients may share the address: a proxy may stand there that does not say whom it speaks for. */
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

/** As for webhooks, without what --allow-cidr and --block-cidr make of it. */
const reserved = compileBlocklist({ local: false, block: [], allow: [] })

function isReserved(address: string): boolean {
  // What is no address is blocked for webhooks, but nobody's own network.
  return ipAddressBytes(address) !== undefined && isBlocked(reserved, address)
}
