/**
 * The 64-bit key under which a client address is counted. It is no hash but the address itself, so that no
 * two clients can be mistaken for one another: IPv6 counts per /64, whose prefix has 64 bits, and all else
 * lies in ::/32, of which no prefix belongs to a client on the internet.
 *
 *     high word, low word
 *     0, 0            (never a key: marks an empty place)
 *     1, IPv4         an IPv4 address, also one written as IPv4-mapped IPv6
 *     2, 0            what is no address: a Unix socket, a header with anything in it
 *     3, low word     IPv6 in 0:0::/32, such as ::1
 *     the prefix      IPv6
 */
import { ipAddressBytes, unmappedBytes } from '../net/ip-address.ts'

export interface ClientKey {
  /** Unsigned, like the other. */
  readonly high: number
  readonly low: number
}

export function clientKey(address: string): ClientKey {
  // http/client-address.ts writes the network of an IPv6 client.
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
