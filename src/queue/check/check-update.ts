/**
 * Decides whether bytes are a valid update (protocol.md §4). The check is strict because one malformed update would break a
 * client at every poll.
 *
 * An update is valid UTF-8 and JSON without lone surrogate escapes, nested at most 64 levels deep: an object with exactly
 * one key, whose name is one of the types written without escapes and whose value is an object. The check is one pass
 * over the bytes, without recursion; it allocates only the result. json-automaton.ts has the table.
 *
 * Updates that are pushed are checked by native code, which has the same rules (check-batch.ts). This check says why it has
 * refused one, and is what the tests compare it with.
 *
 * Measured on Node 20 (noisy machine): 300 B 0.6-0.8 us, 4 KB 3-5 us, 512 KB 0.7-0.8 ms. JSON.parse alone, which would
 * leave half of the rules to a separate scan, takes 1.1-1.5 us, 3 us (one long string; 23 us for nested structure) and
 * 1.0 ms.
 */

import { isUtf8 } from 'node:buffer'
import { PostboteError } from '../../kit/errors.ts'
import {
  actionFirst,
  afterValue,
  comma,
  expectedIn,
  firstElement,
  firstKey,
  key,
  keyString,
  openArray,
  openObject,
  skipPlain,
  step,
  value,
} from './json-automaton.ts'
import { skipSpace } from './json-scan.ts'
import { byType, contractTypes, updateTypes } from '../../kit/update-types.ts'

/** An update that has passed the check. */
export interface CheckedUpdate {
  /** The index of its type in `updateTypes`. */
  readonly typeNumber: number
  /**
   * The bytes between the outer braces without surrounding white space: `"message":{...}`. This is a view that keeps the
   * checked bytes alive; copy it if it outlives them.
   */
  readonly text: Buffer
}

/**
 * Checks the bytes of one update.
 *
 * @returns the type and a view of the text
 * @throws BAD_UPDATE with what was expected and at which byte.
 */
export function checkUpdate(bytes: Buffer): CheckedUpdate {
  if (!isUtf8(bytes)) throw refusal('valid UTF-8', bytes, firstBadByte(bytes))
  const open = skipSpace(bytes, 0)
  if (bytes[open] !== 0x7b) throw refusal('an object', bytes, open)
  const keyStart = skipSpace(bytes, open + 1)
  if (bytes[keyStart] !== 0x22)
    throw refusal('exactly one key, the type of the update,', bytes, keyStart)
  const keyEnd = skipName(bytes, keyStart + 1)
  const typeNumber = typeNumberAt(bytes, keyStart + 1, keyEnd)
  if (typeNumber < 0) throw typeRefusal(bytes, keyStart)
  const colon = skipSpace(bytes, keyEnd + 1)
  if (bytes[colon] !== 0x3a) throw refusal('":"', bytes, colon)
  const payload = skipSpace(bytes, colon + 1)
  if (bytes[payload] !== 0x7b) throw refusal('an object as the value of the type', bytes, payload)
  const textEnd = skipObject(bytes, payload + 1)
  const close = skipSpace(bytes, textEnd)
  if (bytes[close] !== 0x7d) {
    throw refusal(
      bytes[close] === 0x2c ? 'exactly one key' : '"}" after the only key',
      bytes,
      close,
    )
  }
  const end = skipSpace(bytes, close + 1)
  if (end !== bytes.length)
    throw refusal('nothing after the update (POST /v1/updates takes many)', bytes, end)
  return { typeNumber, text: bytes.subarray(keyStart, textEnd) }
}

/**
 * An update may nest this deep, including its outer object. Chosen: deeper ones break the JSON parsers of clients at
 * every poll, and real updates stay far below it.
 */
export const updateNestingMax = 64
/** What was opened at each depth. All checks share it because a check runs to its end without a pause. */
const opened = new Uint8Array(updateNestingMax + 1)
/** The payload of an update is the second level: it is inside the outer object. */
const payloadDepth = 2
opened[payloadDepth] = openObject

/**
 * Checks the payload and returns the position after it.
 *
 * @param from - the position after the payload's opening brace
 */
function skipObject(bytes: Buffer, from: number): number {
  const end = bytes.length
  let depth = payloadDepth
  let state = firstKey
  let at = from
  while (at < end) {
    const next = step(state, bytes[at])
    if (next < actionFirst) {
      state = next
      if (state <= keyString) at = skipPlain(bytes, at + 1) - 1
    } else if (next === comma) {
      state = opened[depth] === openObject ? key : value
    } else if (next <= openArray) {
      if (depth === updateNestingMax)
        throw refusal(`nesting of at most ${updateNestingMax}`, bytes, at)
      depth++
      opened[depth] = next
      state = next === openObject ? firstKey : firstElement
    } else {
      if (opened[depth] !== next - 2) throw refusal(expectedAt(state, depth), bytes, at)
      if (depth === payloadDepth) return at + 1
      depth--
      state = afterValue
    }
    at++
  }
  throw refusal(expectedAt(state, depth), bytes, end)
}

function expectedAt(state: number, depth: number): string {
  if (state !== afterValue) return expectedIn(state)
  return opened[depth] === openObject ? '"," or "}"' : '"," or "]"'
}

/** Returns the end of a run of `a` to `z`, `_` and digits, the only characters in the names of types. */
function skipName(bytes: Buffer, from: number): number {
  let at = from
  while (isOfName(bytes[at])) at++
  return at
}

function isOfName(byte = 0): boolean {
  return (byte >= 0x5f && byte <= 0x7a && byte !== 0x60) || (byte >= 0x30 && byte <= 0x39)
}

/**
 * No two types of the contract have the same length and first letter, so one table access and one comparison find such a
 * type. An added type is looked for among the others.
 */
const typeBySlot = new Int8Array(32 << 5).fill(-1)
const typeNames = byType(
  (type) => Buffer.from(type),
  ({ name }) => Buffer.from(name),
)
for (const [typeNumber, type] of contractTypes.entries()) {
  const slot = slotOf(type.length, type.charCodeAt(0))
  const other = contractTypes[typeBySlot[slot] ?? -1]
  if (other !== undefined) {
    throw new Error(
      `the types ${other} and ${type} have the same length and first letter: let slotOf, and its call in typeNumberAt, tell them apart by one more byte`,
    )
  }
  typeBySlot[slot] = typeNumber
}

function slotOf(length: number, firstByte: number | undefined): number {
  return (length << 5) | ((firstByte ?? 0) & 31)
}

function typeNumberAt(bytes: Buffer, start: number, end: number): number {
  const length = end - start
  if (length === 0 || length > 31 || bytes[end] !== 0x22) return -1
  const typeNumber = typeBySlot[slotOf(length, bytes[start])] ?? -1
  const name = typeNames[typeNumber]
  if (name !== undefined && isAt(bytes, start, name)) return typeNumber
  for (let number = contractTypes.length; number < typeNames.length; number++) {
    const other = typeNames[number]
    if (other?.length === length && isAt(bytes, start, other)) return number
  }
  return -1
}

function isAt(bytes: Buffer, start: number, name: Buffer): boolean {
  for (let at = 0; at < name.length; at++) {
    if (bytes[start + at] !== name[at]) return false
  }
  return true
}

function typeRefusal(bytes: Buffer, keyStart: number): PostboteError {
  const [, name] = /^"(\w{1,32})"/.exec(bytes.toString('latin1', keyStart, keyStart + 34)) ?? []
  const detail =
    name === 'update_id'
      ? `expected no update_id, which the server assigns, at byte ${keyStart}`
      : `expected one of the ${updateTypes.length} update types as the only key, without escapes, at byte ${keyStart}, got ${name === undefined ? 'something else' : `"${name}"`}: ${updateTypes.join(', ')}`
  return new PostboteError('BAD_UPDATE', { detail })
}

/**
 * Decoding replaces invalid UTF-8 by replacement characters, so the first difference from the decoded text is the first
 * invalid byte.
 */
function firstBadByte(bytes: Buffer): number {
  const decoded = Buffer.from(bytes.toString())
  let at = 0
  while (bytes[at] === decoded[at]) at++
  return at
}

function refusal(expected: string, bytes: Buffer, at: number): PostboteError {
  const got = at < bytes.length ? foundAt(bytes.toString('latin1', at, at + 1)) : 'the end'
  return new PostboteError('BAD_UPDATE', {
    detail: `expected ${expected} at byte ${at}, got ${got}`,
  })
}

function foundAt(character: string): string {
  if (character === '"') return 'a string'
  return /[!-~]/.test(character) ? character : `byte ${character.charCodeAt(0)}`
}
