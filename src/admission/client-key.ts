/**
 * The 64-bit key under which a client address is counted. The key is the address itself and not a hash, so two clients
 * never share a key. An IPv6 client counts by its /64 prefix, which has 64 bits. All other keys lie in ::/32, which
 * contains no address of the public internet.
 *
 *     high word, low word
 *     0, 0            never a key: marks an empty place
 *     1, IPv4         an IPv4 address, also in IPv4-mapped IPv6 form
 *     2, 0            not an address: a Unix socket, or a header with arbitrary text
 *     3, low word     IPv6 in 0:0::/32, such as ::1
 *     the prefix      any other IPv6 address
 */
import { ipAddressBytes, unmappedBytes } from '../http/ip-address.ts'

export interface ClientKey {
  /** Unsigned 32 bits, like `low`. */
  readonly high: number
  readonly low: number
}

export function clientKey(address: string): ClientKey {
  // http/client.ts writes an IPv6 client as its /64 network.
  const parsed = ipAddressBytes(address.endsWith('/64') ? address.slice(0, -3) : address)
  if (parsed === undefined) return { high: 2, low: 0 }
  const bytes = unmappedBytes(parsed)
  if (bytes.length === 4) return { high: 1, low: wordAt(bytes, 0) }
  const high = wordAt(bytes, 0)
  return { high: high <= 3 ? 3 : high, low: wordAt(bytes, 4) }
}

function wordAt(bytes: readonly number[], offset: number): number {
  let word = 0
  for (let index = offset; index < offset + 4; index++) word = word * 256 + (bytes[index] ?? 0)
  return word
}
