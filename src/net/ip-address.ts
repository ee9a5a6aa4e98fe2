/**
 * The bytes of an address as text, 4 or 16 of them. ipaddr.js would also read octal and short forms, which neither a
 * resolver nor a socket gives, and takes ::8.8.8.8 for ::ffff:8.8.8.8: it gets none of these to see.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Whether `text` is an IPv4 or IPv6 address without a zone (`%eth0`). Only addresses of this machine's own links have
 * zones, so none has a place in a webhook; and `isIP` accepts any text after the percent sign, which must not reach a proxy.
 */
export function isPlainAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%')
}

/** Undefined for what is no whole address; a zone (`%eth0`) is left out. */
export function ipAddressBytes(text: string): readonly number[] | undefined {
  const address = text.split('%', 1)[0] ?? ''
  if (isIPv4(address)) return ipaddr.IPv4.parse(address).toByteArray()
  return isIPv6(address) ? ipaddr.IPv6.parse(withoutDots(address)).toByteArray() : undefined
}

/** The IPv4 address in `::ffff:0:0/96`, which is how a dual-stack socket writes an IPv4 client; all else as it is. */
export function unmappedBytes(bytes: readonly number[]): readonly number[] {
  if (bytes.length !== 16 || bytes[10] !== 0xff || bytes[11] !== 0xff) return bytes
  for (let at = 0; at < 10; at++) if (bytes[at] !== 0) return bytes
  return bytes.slice(12)
}

const ipv4Tail = /\d+\.\d+\.\d+\.\d+$/

/** Its last four bytes in groups of hexadecimal digits, as the others are. */
function withoutDots(address: string): string {
  return address.replace(ipv4Tail, (tail) => {
    const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(tail).toByteArray()
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  })
}
