/**
 * Finds single values in the bytes of JSON that is known to be valid, without parsing the rest and without
 * allocating. On anything else it returns nonsense, but it always ends and stays within the bytes.
 *
 * Where a key comes twice in one object the first one counts (JSON.parse takes the last): a scan may then stop
 * early. Positions are byte offsets; -1 stands for nothing found.
 */

import { skipPlain } from './json-automaton.ts'

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const openBracket = 0x5b
const comma = 0x2c

/** Where the value of `name` begins in the object that begins at `open`; -1 where no object begins there. */
export function findMember(json: Buffer, open: number, name: Buffer): number {
  if (json[open] !== openBrace) return -1
  let at = skipSpace(json, open + 1)
  while (json[at] === quote) {
    const keyEnd = skipString(json, at)
    const found = isKey(json, { start: at + 1, end: keyEnd - 1 }, name)
    // Behind the key: white space, a colon, white space.
    const valueStart = skipSpace(json, skipSpace(json, keyEnd) + 1)
    if (found) return valueStart
    at = skipSpace(json, skipSpace(json, skipValue(json, valueStart)) + 1)
  }
  return -1
}

/** The byte after the value that begins at `from`. */
export function skipValue(json: Buffer, from: number): number {
  const first = json[from]
  if (first === quote) return skipString(json, from)
  if (first === openBrace || first === openBracket) return skipContainer(json, from)
  const end = json.length
  let at = from
  while (at < end && endsScalar[json[at] ?? 0] === 0) at++
  return at
}

export function skipSpace(json: Buffer, from: number): number {
  let at = from
  for (;;) {
    const byte = json[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
}

/** The byte after the string whose opening quote is at `from`. */
export function skipString(json: Buffer, from: number): number {
  const end = json.length
  let at = skipPlain(json, from + 1)
  while (at < end && json[at] !== quote) {
    // Behind an escape; any other byte that is not plain would not be JSON.
    at = skipPlain(json, at + 2)
  }
  return at < end ? at + 1 : end
}

/** 1e3 is 1000, in whichever way a producer writes it; an integer keeps all its digits. */
export function numberText(json: Buffer, start: number, end: number): string {
  const digits = json.toString('latin1', start, end)
  for (let at = start + 1; at < end; at++) {
    const byte = json[at] ?? 0
    if (byte < 0x30 || byte > 0x39) return `${Number(digits)}`
  }
  return digits
}

export interface JsonMeasure {
  /** Levels of objects and arrays; 0 for a plain value. */
  readonly nesting: number
  /** At least as many as there are, and at most one more for each empty object or array. */
  readonly values: number
}

/**
 * What parsing will cost, for much less than parsing. Of bytes that are not JSON it measures at least what stands
 * before the place at which a parser gives up.
 */
export function measureJson(json: Buffer): JsonMeasure {
  const end = json.length
  let values = 1
  let depth = 0
  let nesting = 0
  let at = 0
  while (at < end) {
    const byte = json[at] ?? 0
    const weight = weights[byte] ?? 0
    if (weight === quote) {
      at = skipString(json, at)
      continue
    }
    at++
    if (byte === comma) values++
    depth += weight
    if (weight === 1) {
      values++
      if (depth > nesting) nesting = depth
    }
  }
  return { nesting, values }
}

const endsScalar = new Uint8Array(256)
for (const byte of Buffer.from(' \t\r\n,]}')) endsScalar[byte] = 1

/** What a container's depth is changed by; `quote` stands for a string, in which nothing counts. */
const weights = new Int8Array(256)
for (const byte of Buffer.from('{[')) weights[byte] = 1
for (const byte of Buffer.from('}]')) weights[byte] = -1
weights[quote] = quote

function skipContainer(json: Buffer, from: number): number {
  const end = json.length
  let depth = 0
  let at = from
  while (at < end) {
    const weight = weights[json[at] ?? 0] ?? 0
    if (weight === quote) {
      at = skipString(json, at)
      continue
    }
    at++
    depth += weight
    if (depth === 0) return at
  }
  return end
}

interface Range {
  readonly start: number
  readonly end: number
}

function isKey(json: Buffer, { start, end }: Range, name: Buffer): boolean {
  if (end - start === name.length) {
    for (let at = start; at < end; at++) {
      if (json[at] !== name[at - start]) return false
    }
    return true
  }
  // Only a longer key can be the same one, written with escapes.
  return end - start > name.length && isEscapedKey(json, { start, end }, name)
}

function isEscapedKey(json: Buffer, { start, end }: Range, name: Buffer): boolean {
  for (let at = start; at < end; at++) {
    if (json[at] === backslash) {
      return JSON.parse(json.toString('utf8', start - 1, end + 1)) === name.toString()
    }
  }
  return false
}
