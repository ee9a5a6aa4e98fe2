/**
 * The addresses that a webhook may not use: all reserved ones (the server must not be turned against its own network) and
 * those of `--block-cidr`, except those of `--allow-cidr`. The list is compiled once into sorted, disjoint ranges in one
 * SharedArrayBuffer, so that every thread judges from the same memory by binary search.
 *
 * Layout, in 32-bit words (in memory only, never stored):
 *
 *     0  number of ranges in each of the four lists
 *     4  list 0: IPv4 blocked                         per range: 1 word first, 1 word last
 *        list 1: IPv6 blocked                         4 words first, 4 words last
 *        list 2: IPv6 of --allow-cidr                 as list 1
 *        list 3: IPv6 of --block-cidr without list 2  as list 1
 *
 * An IPv6 address that carries an IPv4 address (mapped, NAT64, 6to4) is judged by the latter, unless list 2 or 3 contains
 * it.
 */
import { ipAddressBytes, isPlainAddress } from './ip-address.ts'

/** The options that decide which addresses are blocked. */
export interface BlocklistOptions {
  /** `--local`: reserved addresses are allowed; only `block` counts. */
  readonly local: boolean
  /** The ranges of `--block-cidr`. */
  readonly block: readonly string[]
  /** The ranges of `--allow-cidr`. They take precedence over `block` and over reserved addresses. */
  readonly allow: readonly string[]
}

const reservedIpv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]
const globalIpv6 = '2000::/3'
const reservedIpv6 = ['2001::/23', '2001:db8::/32', '3fff::/20']
const mapped = parseCidr('::ffff:0:0/96')
/** The IPv6 ranges that carry an IPv4 address, and the byte at which it begins. */
const embeddings = [
  { range: parseCidr('::ffff:0.0.0.0/96'), at: 12 },
  { range: parseCidr('64:ff9b::/96'), at: 12 },
  { range: parseCidr('2002::/16'), at: 2 },
]

/** The first and the last address as numbers, both inclusive. */
interface Range {
  readonly bits: 32 | 128
  readonly first: bigint
  readonly last: bigint
}

const headWords = 4

/**
 * Compiles the blocklist.
 *
 * @returns shared memory for `isBlocked`, in the layout above
 * @throws TypeError with the text of a CIDR that cannot be read.
 */
export function compileBlocklist(options: BlocklistOptions): SharedArrayBuffer {
  const block = options.block.map((text) => unmapped(parseCidr(text)))
  const allow = options.allow.map((text) => unmapped(parseCidr(text)))
  const reserved = options.local ? [] : reservedRanges()
  const allow128 = merge(allow.filter((range) => range.bits === 128))
  const lists = [
    subtract(
      merge([...reserved, ...block].filter((range) => range.bits === 32)),
      merge(allow.filter((range) => range.bits === 32)),
    ),
    subtract(merge([...reserved, ...block].filter((range) => range.bits === 128)), allow128),
    allow128,
    subtract(merge(block.filter((range) => range.bits === 128)), allow128),
  ]
  const length = lists.flat().reduce((sum, range) => sum + range.bits / 16, headWords)
  const words = new Uint32Array(new SharedArrayBuffer(length * 4))
  let at = headWords
  for (const [index, list] of lists.entries()) {
    words[index] = list.length
    for (const range of list) {
      for (const value of [range.first, range.last]) {
        for (let shift = range.bits - 32; shift >= 0; shift -= 32) {
          words[at++] = Number((value >> BigInt(shift)) & 0xffff_ffffn)
        }
      }
    }
  }
  return words.buffer
}

/**
 * Tells whether `address` must not be connected to. That includes any text that is not an address and addresses with a
 * zone.
 *
 * @param ranges - the result of `compileBlocklist`
 * @param address - an IPv4 or IPv6 address
 */
export function isBlocked(ranges: SharedArrayBuffer, address: string): boolean {
  const bytes = isPlainAddress(address) ? ipAddressBytes(address) : undefined
  if (bytes === undefined) return true
  const words = new Uint32Array(ranges)
  if (bytes.length === 4) return contains(words, 0, bytes)
  if (contains(words, 2, bytes)) return false
  if (contains(words, 3, bytes)) return true
  const value = toBigint(bytes)
  for (const { range, at } of embeddings) {
    if (value >= range.first && value <= range.last) {
      return contains(words, 0, bytes.slice(at, at + 4))
    }
  }
  return contains(words, 1, bytes)
}

/** Searches for the last range that begins at or before the address. */
function contains(words: Uint32Array, list: number, bytes: readonly number[]): boolean {
  const address = toWords(bytes)
  const width = address.length
  let base = headWords
  for (let before = 0; before < list; before++) {
    base += (words[before] ?? 0) * (before === 0 ? 2 : 8)
  }
  let low = 0
  let high = words[list] ?? 0
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compare(words, base + middle * 2 * width, address) <= 0) low = middle + 1
    else high = middle
  }
  return low > 0 && compare(words, base + ((low - 1) * 2 + 1) * width, address) >= 0
}

function compare(words: Uint32Array, at: number, address: readonly number[]): number {
  for (const [index, word] of address.entries()) {
    const difference = (words[at + index] ?? 0) - word
    if (difference !== 0) return difference
  }
  return 0
}

function toWords(bytes: readonly number[]): number[] {
  const words: number[] = []
  for (let at = 0; at < bytes.length; at += 4) {
    words.push(Number(toBigint(bytes.slice(at, at + 4))))
  }
  return words
}

function toBigint(bytes: readonly number[]): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
}

/**
 * Parses a range like 10.0.0.0/8 or 2001:db8::/32. An address without a prefix length is a range of one address.
 *
 * @returns the range; host bits of the address are ignored
 * @throws TypeError if the text is not a range.
 */
function parseCidr(text: string): Range {
  const [address = '', prefix, ...rest] = text.split('/')
  const bytes = isPlainAddress(address) ? ipAddressBytes(address) : undefined
  const bits = bytes?.length === 4 ? 32 : 128
  const length = prefix === undefined ? bits : Number(prefix)
  const isLength = prefix === undefined || /^\d{1,3}$/.test(prefix)
  if (bytes === undefined || rest.length > 0 || !isLength || length > bits) {
    throw new TypeError(
      `expected an address range such as 10.0.0.0/8 or 2001:db8::/32, got ${text}`,
    )
  }
  const hostBits = BigInt(bits - length)
  const first = (toBigint(bytes) >> hostBits) << hostBits
  return { bits, first, last: first + (1n << hostBits) - 1n }
}

/** Converts a range of mapped addresses to the IPv4 addresses in it. */
function unmapped(range: Range): Range {
  if (range.bits === 32 || range.first < mapped.first || range.last > mapped.last) return range
  return { bits: 32, first: range.first & 0xffff_ffffn, last: range.last & 0xffff_ffffn }
}

function reservedRanges(): Range[] {
  const everything: Range = { bits: 128, first: 0n, last: (1n << 128n) - 1n }
  return [
    ...reservedIpv4.map(parseCidr),
    ...subtract([everything], [parseCidr(globalIpv6)]),
    ...reservedIpv6.map(parseCidr),
  ]
}

/** Sorts ranges of one family and joins those that overlap or are adjacent. */
function merge(ranges: readonly Range[]): Range[] {
  const merged: Range[] = []
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    const previous = merged.at(-1)
    if (previous !== undefined && range.first <= previous.last + 1n) {
      const last = range.last > previous.last ? range.last : previous.last
      merged[merged.length - 1] = { ...previous, last }
    } else {
      merged.push(range)
    }
  }
  return merged
}

/** Returns the parts of `ranges` that are not in `holes`. Both are merged, so one pass over both is enough. */
function subtract(ranges: readonly Range[], holes: readonly Range[]): Range[] {
  const left: Range[] = []
  let next = 0
  for (const range of ranges) {
    let first = range.first
    while ((holes[next]?.last ?? first) < first) next++
    for (let at = next; at < holes.length; at++) {
      const hole = holes[at]
      if (hole === undefined || hole.first > range.last) break
      if (hole.first > first) left.push({ ...range, first, last: hole.first - 1n })
      first = hole.last + 1n
      // The last hole may extend into the next range.
      next = at
    }
    if (first <= range.last) left.push({ ...range, first })
  }
  return left
}
