/**
 * Reads the header lines of pairs in an NDJSON stream: the bot that an update is for, and the options of the push (protocol.md
 * §9). Native code has read the headers that are as programs write them (native-bindings/split_pairs.c), with the same
 * results; what it leaves is read here.
 */
import { isUtf8 } from 'node:buffer'
import { pairFields } from '../../kit/added-type.ts'
import { PostboteError, toPostboteError } from '../../kit/errors.ts'
import { botIdMax, botIdMin } from '../../kit/limits.ts'
import { updateTypeNumber } from '../../kit/update-types.ts'
import { findLastMember, findMember, numberText, skipValue } from '../../queue/check/json-scan.ts'
import {
  headerTooLargeFlag,
  type RowOptions,
  type UpdateRows,
  updateTooLargeFlag,
} from '../../shard/update-rows.ts'
import { pairHeaderBytesMax } from '../../api/limits.ts'
import {
  readIdempotencyKey,
  readIsTest,
  readIsValidated,
  readOrderingKey,
  readTrace,
  readTtlS,
  refusal,
  refuseUnknown,
} from '../../api/update-options.ts'

/** The fields of a header line. */
export interface PairHeader extends RowOptions {
  readonly botId: number
}

const untracedFields = pairFields.filter((field) => field !== 'traceparent')
const botIdName = Buffer.from('bot_id')
const orderingKeyName = Buffer.from('ordering_key')

/**
 * Reads the headers that have no bot yet, and refuses those that are wrong or too large, and those of updates that are too
 * large.
 *
 * @param updateBytesMax - The limit for an update that the error tells.
 */
export function readHeaders(
  rows: UpdateRows,
  updateBytesMax: number,
  traces: HeaderTraces = 'refused',
): void {
  for (let nth = 0; nth < rows.count; nth++) {
    if (!Number.isNaN(rows.botOf(nth))) continue
    const flags = rows.flagsOf(nth)
    if ((flags & (headerTooLargeFlag | updateTooLargeFlag)) !== 0) {
      rows.refuseHeader(nth, tooLargeError(flags, updateBytesMax), -1)
      continue
    }
    const line = rows.headerOf(nth)
    try {
      const header = parsePairHeader(line, traces)
      rows.bots[nth] = header.botId
      rows.setOptions(nth, header)
    } catch (error) {
      rows.refuseHeader(nth, toPostboteError(error), botIdIn(line) ?? -1)
    }
  }
}

function tooLargeError(flags: number, updateBytesMax: number): PostboteError {
  const isHeader = (flags & headerTooLargeFlag) !== 0
  return new PostboteError('UPDATE_TOO_LARGE', {
    detail: `expected at most ${isHeader ? pairHeaderBytesMax : updateBytesMax} bytes in the ${isHeader ? 'header' : 'update'} line of the pair, which was skipped`,
  })
}

/**
 * What becomes of the field `traceparent`: it is kept with the update, or refused as a field that does not exist, because
 * updates are not traced here. Another worker, whose options are newer or older, has taken a field that is ignored.
 */
export type HeaderTraces = 'kept' | 'ignored' | 'refused'

/**
 * Parses a header line.
 *
 * @param line - The line without its end.
 * @returns The fields; those that are absent are undefined, or false for `isTest` and `isValidated`.
 * @throws BAD_REQUEST that names the field and what is expected.
 */
export function parsePairHeader(line: Buffer, traces: HeaderTraces = 'refused'): PairHeader {
  const fields = fieldsIn(line)
  if (Object.keys(fields).some((field) => updateTypeNumber.has(field))) {
    throw refusal('header', 'bot_id and options on a line of their own, before that of the update')
  }
  refuseUnknown(fields, traces === 'refused' ? untracedFields : pairFields)
  const botId = fields['bot_id']
  if (!isBotId(botId)) {
    throw refusal('bot_id', `a whole number from ${botIdMin} to ${botIdMax}`, botId)
  }
  const firstBotId = Number(numberAt(line, findMember(line, line.indexOf('{'), botIdName)))
  if (firstBotId !== botId) throw refusal('bot_id', 'a single value')
  const key = fields['ordering_key']
  return {
    botId,
    orderingKey: readOrderingKey(
      typeof key === 'number' ? lastNumberOf(line, orderingKeyName) : key,
    ),
    ttlS: readTtlS(fields['ttl']),
    idempotencyKey: readIdempotencyKey(fields['idempotency_key']),
    isTest: readIsTest(fields['test']),
    isValidated: readIsValidated(fields['validate']),
    ...(traces === 'kept' ? { traceparent: readTrace(fields['traceparent']) } : {}),
  }
}

const usualStart = /^\{"bot_id":([1-9]\d{2,15})[,}]/

/**
 * Returns the bot of a line that is refused for another reason: a key that is not for this bot is the reason that the producer
 * is told.
 */
function botIdIn(line: Buffer): number | undefined {
  const [, digits] = usualStart.exec(line.toString('latin1')) ?? []
  const botId = Number(digits)
  return isBotId(botId) ? botId : undefined
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

/** Returns the text of the number that JSON.parse reads in a valid header, with all of its digits. */
function lastNumberOf(line: Buffer, name: Buffer): string {
  return numberAt(line, findLastMember(line, line.indexOf('{'), name))
}

function numberAt(line: Buffer, at: number): string {
  return numberText(line, at, skipValue(line, at))
}
