/**
 * The first line of a pair of an NDJSON stream: which bot the update is for, and how to treat it (SPEC 9).
 *
 * The worker that reads a stream only needs the bot's owner and takes `botIdOf`, which looks at a few bytes; the
 * owner reads the whole line. Both must see the same bot: a `bot_id` that comes twice is refused.
 */

import { isUtf8 } from 'node:buffer'
import { botIdMax, botIdMin, idempotencyKeyLengthMax, orderingKeyBytesMax } from '../limits.ts'
import { findMember, numberText, skipValue } from '../queue/json-scan.ts'
import {
  type PushOptions,
  readIdempotencyKey,
  readIsTest,
  readOrderingKey,
  readTtlS,
  refusal,
  refuseUnknown,
} from './push-options.ts'

export interface PairHeader extends PushOptions {
  readonly botId: number
  readonly idempotencyKey: string | undefined
}

const headerFields = ['bot_id', 'ordering_key', 'ttl', 'idempotency_key', 'test'] as const
const botIdName = Buffer.from('bot_id')
const orderingKeyName = Buffer.from('ordering_key')

/** Of the header from `start` to `end`. Throws BAD_REQUEST, which names the field and what was expected. */
export function parsePairHeader(bytes: Buffer, start: number, end: number): PairHeader {
  return usualHeader(bytes, start, end) ?? anyHeader(bytes.subarray(start, end))
}

function anyHeader(line: Buffer): PairHeader {
  const fields = fieldsIn(line)
  refuseUnknown(fields, headerFields)
  const botId = fields['bot_id']
  if (!isBotId(botId)) {
    throw refusal('bot_id', `a whole number from ${botIdMin} to ${botIdMax}`)
  }
  const firstBotId = botIdIn(line, 0, line.length) ?? Number(numberOf(line, botIdName))
  if (firstBotId !== botId) throw refusal('bot_id', 'to come once')
  const key = fields['ordering_key']
  return {
    botId,
    orderingKey: readOrderingKey(typeof key === 'number' ? numberOf(line, orderingKeyName) : key),
    ttlS: readTtlS(fields['ttl']),
    idempotencyKey: readIdempotencyKey(fields['idempotency_key']),
    isTest: readIsTest(fields['test']),
  }
}

/**
 * The bot of a header, quickly; undefined where `parsePairHeader` would refuse its bot_id. A line with other faults
 * may have one.
 */
export function botIdOf(bytes: Buffer, start: number, end: number): number | undefined {
  const usual = botIdIn(bytes, start, end)
  if (usual !== undefined) return usual
  try {
    return anyHeader(bytes.subarray(start, end)).botId
  } catch {
    return undefined
  }
}

const usualStart = Buffer.from('{"bot_id":')
const usualOrderingKey = Buffer.from(',"ordering_key":')
const usualIdempotencyKey = Buffer.from(',"idempotency_key":')
const brace = 0x7d
const commaByte = 0x2c
const quote = 0x22
const backslash = 0x5c

/** Past `expected` where that stands at `at`, else -1. */
function past(bytes: Buffer, at: number, expected: Buffer): number {
  for (let nth = 0; nth < expected.length; nth++) {
    if (bytes[at + nth] !== expected[nth]) return -1
  }
  return at + expected.length
}

/** The bot of a header that begins with it and has no white space there, as nearly all do. */
function botIdIn(bytes: Buffer, start: number, end: number): number | undefined {
  const digits = past(bytes, start, usualStart)
  if (digits < 0 || bytes[digits] === 0x30) return undefined
  let botId = 0
  let at = digits
  for (; at < end; at++) {
    const digit = (bytes[at] ?? 0) - 0x30
    if (digit < 0 || digit > 9 || botId > botIdMax) break
    botId = botId * 10 + digit
  }
  const isEnd = at < end && (bytes[at] === commaByte || bytes[at] === brace)
  return isEnd && isBotId(botId) ? botId : undefined
}

/**
 * A header as programs write it: no white space, at most the two keys behind the bot, no escapes in them. JSON.parse and
 * the reading of fields take 1 us of the 8 that an update costs in all, this takes a tenth.
 */
function usualHeader(bytes: Buffer, start: number, end: number): PairHeader | undefined {
  const botId = botIdIn(bytes, start, end)
  if (botId === undefined) return undefined
  let at = skipDigits(bytes, start + usualStart.length)
  let orderingKey: string | undefined
  let idempotencyKey: string | undefined
  const ordering = past(bytes, at, usualOrderingKey)
  if (ordering > 0) {
    at = skipKey(bytes, ordering)
    orderingKey = keyText(bytes, ordering, at)
    if (orderingKey === undefined) return undefined
  }
  const idempotency = past(bytes, at, usualIdempotencyKey)
  if (idempotency > 0 && bytes[idempotency] === quote) {
    at = skipKey(bytes, idempotency)
    idempotencyKey = keyText(bytes, idempotency, at)
    if (idempotencyKey === undefined || at - idempotency > idempotencyKeyLengthMax) return undefined
  }
  if (bytes[at] !== brace || at + 1 !== end) return undefined
  return { botId, orderingKey, ttlS: undefined, idempotencyKey, isTest: false }
}

/** Behind a number of digits alone, or a text in which every byte is a printable character of ASCII. */
function skipKey(bytes: Buffer, from: number): number {
  if (bytes[from] !== quote) return skipDigits(bytes, from)
  let at = from + 1
  for (;;) {
    const byte = bytes[at] ?? 0
    if (byte === quote) return at + 1
    if (byte < 0x20 || byte > 0x7e || byte === backslash) return from
    at++
  }
}

function skipDigits(bytes: Buffer, from: number): number {
  let at = from
  for (;;) {
    const byte = bytes[at] ?? 0
    if (byte < 0x30 || byte > 0x39) return at
    at++
  }
}

/** Undefined where it is empty or long, or a number that begins with 0: the long way says what it is. */
function keyText(bytes: Buffer, start: number, end: number): string | undefined {
  const isText = bytes[start] === quote
  const length = isText ? end - start - 2 : end - start
  if (length <= 0 || length > orderingKeyBytesMax) return undefined
  if (!isText && bytes[start] === 0x30) return undefined
  return isText
    ? bytes.toString('latin1', start + 1, end - 1)
    : bytes.toString('latin1', start, end)
}

function isBotId(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= botIdMin && Number(value) <= botIdMax
}

function fieldsIn(line: Buffer): Readonly<Record<string, unknown>> {
  if (!isUtf8(line)) throw refusal('header', 'valid UTF-8')
  let parsed: unknown
  try {
    parsed = JSON.parse(line.toString())
  } catch {
    throw refusal('header', 'a JSON object on one line')
  }
  if (!isRecord(parsed)) throw refusal('header', 'a JSON object on one line')
  return parsed
}

function isRecord(of: unknown): of is Readonly<Record<string, unknown>> {
  return typeof of === 'object' && of !== null && !Array.isArray(of)
}

/** The text of a number in a valid header, with all its digits. */
function numberOf(line: Buffer, name: Buffer): string {
  const at = findMember(line, line.indexOf('{'), name)
  return numberText(line, at, skipValue(line, at))
}
