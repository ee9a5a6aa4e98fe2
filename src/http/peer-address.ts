/**
 * The address that a request is counted under: the peer's, or what a reverse proxy says it is.
 *
 * X-Real-Ip is believed only where the connection comes from a reserved address or a Unix socket: a proxy stands in
 * the own network, and anybody on the internet can write a header. IPv6 counts per /64, since that is what one
 * customer is given; an IPv4 address inside IPv6 counts as itself.
 */
import { BlockList, isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Peers without any address: a Unix socket whose proxy names nobody. They share one count. */
export const unixPeer = 'unix'

export function peerAddress(socketAddress: string | undefined, realIp: unknown): string {
  const isUnix = socketAddress === undefined || socketAddress === ''
  const own = isUnix ? unixPeer : countedAs(socketAddress)
  if (typeof realIp !== 'string' || isIP(realIp.trim()) === 0) return own
  return isUnix || isReserved(socketAddress) ? countedAs(realIp.trim()) : own
}

function countedAs(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString()
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16))
  return `${network.join(':')}::/64`
}

function isReserved(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  if (!(parsed instanceof ipaddr.IPv6)) return reservedV4.check(parsed.toString())
  const text = parsed.toNormalizedString()
  return !globalV6.check(text, 'ipv6') || reservedV6.check(text, 'ipv6')
}

// The reserved ranges of webhook addresses, without what --allow-cidr and --block-cidr make of them.
const reservedV4 = blockListOf('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
])
const globalV6 = blockListOf('ipv6', [['2000::', 3]])
const reservedV6 = blockListOf('ipv6', [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['3fff::', 20],
])

function blockListOf(
  family: 'ipv4' | 'ipv6',
  ranges: readonly (readonly [network: string, bits: number])[],
): BlockList {
  const list = new BlockList()
  for (const [network, bits] of ranges) list.addSubnet(network, bits, family)
  return list
}
