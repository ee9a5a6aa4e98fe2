/**
 * Finds single values in the bytes of valid JSON without parsing the rest and without allocating. For other input the
 * results are meaningless, but every function terminates and stays within the bytes.
 *
 * If a key occurs twice in one object, JSON.parse takes the last occurrence, as `findLastMember` does; `findMember` stops at the
 * first. Positions are byte offsets. -1 means that nothing was found.
 */
import { skipPlain } from './json-automaton.ts'

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const openBracket = 0x5b
const comma = 0x2c

/**
 * Finds a member of an object.
 *
 * @param json - the JSON text
 * @param open - the position of the object
 * @param name - the key as bytes
 * @returns the position of the value; -1 if there is no object at `open` or no such key
 */
export function findMember(json: Buffer, open: number, name: Buffer): number {
  if (json[open] !== openBrace) return -1
  return findFrom(json, skipSpace(json, open + 1), name)
}

/** The same for the last of several members with this key, as JSON.parse reads them. */
export function findLastMember(json: Buffer, open: number, name: Buffer): number {
  let last = -1
  let next = findMember(json, open, name)
  while (next >= 0) {
    last = next
    next = findFrom(json, nextKey(json, last), name)
  }
  return last
}

/**
 * Calls `visit` with each member of an object.
 *
 * @param visit - gets where its key is, without the quotes, and the position of its value
 */
export function eachMember(
  json: Buffer,
  open: number,
  visit: (key: { readonly start: number; readonly end: number }, value: number) => void,
): void {
  let at = skipSpace(json, open + 1)
  while (json[at] === quote) {
    const keyEnd = skipString(json, at)
    const value = skipSpace(json, skipSpace(json, keyEnd) + 1)
    visit({ start: at + 1, end: keyEnd - 1 }, value)
    at = nextKey(json, value)
  }
}

/** Finds the next member with this key from the key at `from` on. */
function findFrom(json: Buffer, from: number, name: Buffer): number {
  let at = from
  while (json[at] === quote) {
    const keyEnd = skipString(json, at)
    // After the key: white space, a colon, white space.
    const valueStart = skipSpace(json, skipSpace(json, keyEnd) + 1)
    if (isKey(json, { start: at + 1, end: keyEnd - 1 }, name)) return valueStart
    at = nextKey(json, valueStart)
  }
  return -1
}

/** Returns the position of the key after the value at `valueStart`; of something else if there is none. */
function nextKey(json: Buffer, valueStart: number): number {
  return skipSpace(json, skipSpace(json, skipValue(json, valueStart)) + 1)
}

/** Returns the position after the value that begins at `from`. */
export function skipValue(json: Buffer, from: number): number {
  const first = json[from]
  if (first === quote) return skipString(json, from)
  if (first === openBrace || first === openBracket) return skipContainer(json, from)
  const end = json.length
  let at = from
  while (at < end && endsScalar[json[at] ?? 0] === 0) at++
  return at
}

/** Returns the position of the first byte from `from` on that is not white space. */
export function skipSpace(json: Buffer, from: number): number {
  let at = from
  for (;;) {
    const byte = json[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
}

/** Returns the position after the string whose opening quote is at `from`. */
export function skipString(json: Buffer, from: number): number {
  const end = json.length
  let at = skipPlain(json, from + 1)
  while (at < end && json[at] !== quote) {
    // Skips an escape. Any other byte that is not plain would not be JSON.
    at = skipPlain(json, at + 2)
  }
  return at < end ? at + 1 : end
}

/**
 * Returns a number in one form however a producer writes it: 1e3 becomes 1000. An integer keeps all its digits.
 *
 * @param start - the position of the number
 * @param end - the position after it
 */
export function numberText(json: Buffer, start: number, end: number): string {
  const digits = json.toString('latin1', start, end)
  for (let at = start + 1; at < end; at++) {
    const byte = json[at] ?? 0
    if (byte < 0x30 || byte > 0x39) return `${Number(digits)}`
  }
  return digits
}

/** The size of a JSON text in terms of parsing cost. */
export interface JsonMeasure {
  /** Levels of objects and arrays; 0 for a plain value. */
  readonly nesting: number
  /** An upper bound of the number of values; each empty object or array adds at most one to the true number. */
  readonly values: number
}

/**
 * Measures what parsing will cost, for much less than the cost of parsing. For bytes that are not JSON it counts at least
 * everything before the position at which a parser gives up.
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

/** How each byte changes the depth of a container. `quote` marks the start of a string, whose content does not count. */
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
  // Only a longer key can be the same key: written with escapes.
  return end - start > name.length && isEscapedKey(json, { start, end }, name)
}

function isEscapedKey(json: Buffer, { start, end }: Range, name: Buffer): boolean {
  for (let at = start; at < end; at++) {
    if (json[at] === backslash) return parsedKey(json, start, end) === name.toString()
  }
  return false
}

function parsedKey(json: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(json.toString('utf8', start - 1, end + 1))
  } catch {
    // It is no JSON, and so no key.
    return undefined
  }
}
