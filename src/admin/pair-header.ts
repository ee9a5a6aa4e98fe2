/**
 * The first line of a pair of an NDJSON stream: which bot the update is for, and how to treat it (SPEC 9).
 *
 * The worker that reads a stream only needs the bot's owner and takes `botIdOf`, which looks at a few bytes; the
 * owner reads the whole line. Both must see the same bot: a `bot_id` that comes twice is refused.
 */

import { isUtf8 } from 'node:buffer'
import { botIdMax, botIdMin } from '../limits.ts'
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

/** Throws BAD_REQUEST, which names the field and what was expected. */
export function parsePairHeader(line: Buffer): PairHeader {
  const fields = fieldsIn(line)
  refuseUnknown(fields, headerFields)
  const botId = fields['bot_id']
  if (!isBotId(botId)) {
    throw refusal('bot_id', `a whole number from ${botIdMin} to ${botIdMax}`)
  }
  const firstBotId = usualBotId(line) ?? Number(numberOf(line, botIdName))
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
export function botIdOf(line: Buffer): number | undefined {
  const usual = usualBotId(line)
  if (usual !== undefined) return usual
  try {
    return parsePairHeader(line).botId
  } catch {
    return undefined
  }
}

const usualStart = Buffer.from('{"bot_id":')

/** The bot of a header that begins with it and has no white space there, as nearly all do. */
function usualBotId(line: Buffer): number | undefined {
  let at = usualStart.length
  if (line.length < at || usualStart.compare(line, 0, at) !== 0) return undefined
  let botId = 0
  for (; at < line.length; at++) {
    const digit = (line[at] ?? 0) - 0x30
    if (digit < 0 || digit > 9 || botId > botIdMax) break
    botId = botId * 10 + digit
  }
  const isEnd = line[at] === 0x2c || line[at] === 0x7d
  return isEnd && isBotId(botId) && line[usualStart.length] !== 0x30 ? botId : undefined
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
