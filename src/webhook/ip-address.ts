/**
 * The bytes of an address as text, 4 or 16 of them. Not with ipaddr.js: that reads octal and short forms, which neither a resolver nor a
 * socket gives, takes ::8.8.8.8 for ::ffff:8.8.8.8, and is ten times as slow.
 */
import { isIPv4, isIPv6 } from 'node:net'

/** Undefined for what is no whole address; a zone (`%eth0`) is left out. */
export function ipAddressBytes(text: string): readonly number[] | undefined {
  const address = text.split('%', 1)[0] ?? ''
  if (isIPv4(address)) return address.split('.').map(Number)
  return isIPv6(address) ? parseIpv6(address) : undefined
}

/** The IPv4 address in `::ffff:0:0/96`, which is how a dual-stack socket writes an IPv4 client; all else as it is. */
export function unmappedBytes(bytes: readonly number[]): readonly number[] {
  if (bytes.length !== 16 || bytes[10] !== 0xff || bytes[11] !== 0xff) return bytes
  for (let at = 0; at < 10; at++) if (bytes[at] !== 0) return bytes
  return bytes.slice(12)
}

/** The 16 bytes of what is known to be an IPv6 address. */
function parseIpv6(text: string): readonly number[] {
  const [before = [], after = []] = text.split('::').map(bytesOfGroups)
  const zeros = Array.from({ length: 16 - before.length - after.length }, () => 0)
  return [...before, ...zeros, ...after]
}

/** Of a part without `::`; its last group may be an IPv4 address. */
function bytesOfGroups(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}
