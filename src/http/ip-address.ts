/**
 * Converts an address from text to its 4 or 16 bytes. ipaddr.js alone would also read octal and short forms, which
 * neither a resolver nor a socket returns, and would take ::8.8.8.8 for ::ffff:8.8.8.8. This file passes it none of these
 * forms.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Tells whether `text` is an IPv4 or IPv6 address without a zone (`%eth0`). Only addresses of this machine's own links
 * have zones, so a webhook never needs one. `isIP` accepts any text after the percent sign, which must not reach a proxy.
 */
export function isPlainAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%')
}

/**
 * Converts an address to bytes.
 *
 * @param text - an IPv4 or IPv6 address; a zone (`%eth0`) is ignored
 * @returns 4 or 16 bytes; undefined if the text is not a complete address
 */
export function ipAddressBytes(text: string): readonly number[] | undefined {
  const address = text.split('%', 1)[0] ?? ''
  if (isIPv4(address)) return ipaddr.IPv4.parse(address).toByteArray()
  return isIPv6(address) ? ipaddr.IPv6.parse(withoutDots(address)).toByteArray() : undefined
}

/**
 * Returns the IPv4 address of an address in `::ffff:0:0/96`, the form in which a dual-stack socket reports an IPv4
 * client.
 *
 * @param bytes - 4 or 16 bytes
 * @returns 4 bytes for such an address; otherwise `bytes`
 */
export function unmappedBytes(bytes: readonly number[]): readonly number[] {
  if (bytes.length !== 16 || bytes[10] !== 0xff || bytes[11] !== 0xff) return bytes
  for (let at = 0; at < 10; at++) if (bytes[at] !== 0) return bytes
  return bytes.slice(12)
}

const ipv4Tail = /\d{1,3}(?:\.\d{1,3}){3}$/

/** Replaces the dotted last four bytes by hexadecimal groups. */
function withoutDots(address: string): string {
  return address.replace(ipv4Tail, (tail) => {
    const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(tail).toByteArray()
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
  })
}
