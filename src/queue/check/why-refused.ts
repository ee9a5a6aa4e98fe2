/**
 * Finds the words for an update that native code has refused (check-batch.ts): what was expected, and at which byte.
 *
 * An update (protocol.md §4) is valid UTF-8 and JSON without lone surrogate escapes, nested at most 64 levels deep: an object
 * with exactly one key, whose name is one of the types written without escapes and whose value is an object. This is strict
 * because one malformed update would break a client at every poll. native-bindings/check_updates.c alone decides it; this scan
 * repeats the rules because it names the state in which it was stopped, of which json-automaton.ts has the table. The tests
 * compare the two. It is one pass over the bytes, without recursion.
 */
import { isUtf8 } from 'node:buffer'
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
import { updateTypeNumber, updateTypes } from '../../kit/update-types.ts'

/** Returns the detail of BAD_UPDATE, or undefined for a valid update. */
export function whyRefused(bytes: Buffer): string | undefined {
  if (!isUtf8(bytes)) return expected('valid UTF-8', bytes, firstBadByte(bytes))
  const open = skipSpace(bytes, 0)
  if (bytes[open] !== 0x7b) return expected('an object', bytes, open)
  const keyStart = skipSpace(bytes, open + 1)
  if (bytes[keyStart] !== 0x22)
    return expected('exactly one key, the type of the update,', bytes, keyStart)
  const keyEnd = skipName(bytes, keyStart + 1)
  const type = bytes.toString('latin1', keyStart + 1, keyEnd)
  if (bytes[keyEnd] !== 0x22 || !updateTypeNumber.has(type)) return typeExpected(bytes, keyStart)
  const colon = skipSpace(bytes, keyEnd + 1)
  if (bytes[colon] !== 0x3a) return expected('":"', bytes, colon)
  const payload = skipSpace(bytes, colon + 1)
  if (bytes[payload] !== 0x7b) return expected('an object as the value of the type', bytes, payload)
  const textEnd = skipObject(bytes, payload + 1)
  return typeof textEnd === 'string' ? textEnd : whyRefusedAfter(bytes, textEnd)
}

/** @param textEnd - the position after the payload */
function whyRefusedAfter(bytes: Buffer, textEnd: number): string | undefined {
  const close = skipSpace(bytes, textEnd)
  if (bytes[close] !== 0x7d) {
    const what = bytes[close] === 0x2c ? 'exactly one key' : '"}" after the only key'
    return expected(what, bytes, close)
  }
  const end = skipSpace(bytes, close + 1)
  if (end === bytes.length) return undefined
  return expected('nothing after the update (POST /v1/updates takes many)', bytes, end)
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
 * Returns the position after the payload, or why it is refused.
 *
 * @param from - the position after the payload's opening brace
 */
function skipObject(bytes: Buffer, from: number): number | string {
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
        return expected(`nesting of at most ${updateNestingMax}`, bytes, at)
      depth++
      opened[depth] = next
      state = next === openObject ? firstKey : firstElement
    } else {
      if (opened[depth] !== next - 2) return expected(expectedAt(state, depth), bytes, at)
      if (depth === payloadDepth) return at + 1
      depth--
      state = afterValue
    }
    at++
  }
  return expected(expectedAt(state, depth), bytes, end)
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

function typeExpected(bytes: Buffer, keyStart: number): string {
  const [, name] = /^"(\w{1,32})"/.exec(bytes.toString('latin1', keyStart, keyStart + 34)) ?? []
  return name === 'update_id'
    ? `expected no update_id, which the server assigns, at byte ${keyStart}`
    : `expected one of the ${updateTypes.length} update types as the only key, without escapes, at byte ${keyStart}, got ${name === undefined ? 'something else' : `"${name}"`}: ${updateTypes.join(', ')}`
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

function expected(what: string, bytes: Buffer, at: number): string {
  const got = at < bytes.length ? foundAt(bytes.toString('latin1', at, at + 1)) : 'the end'
  return `expected ${what} at byte ${at}, got ${got}`
}

function foundAt(character: string): string {
  if (character === '"') return 'a string'
  return /[!-~]/.test(character) ? character : `byte ${character.charCodeAt(0)}`
}
