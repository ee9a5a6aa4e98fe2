/**
 * What a producer may say about an update beside the update itself (SPEC 9), and what is expected of each field;
 * the same in the query of a single push and in the header of a pair.
 *
 * An unknown field is refused by its name: a misspelt `ordering_key` would silently lose the order, a misspelt
 * `test` would reach real users. An empty text and null are an absent field, except for an idempotency key: who
 * sends an empty one believes to be protected and is not.
 */

import type { IncomingMessage } from 'node:http'
import { PostboteError } from '../errors.ts'
import { idempotencyKeyLengthMax, orderingKeyBytesMax, ttlSMax } from '../limits.ts'

export interface PushOptions {
  /** As the producer gave it; see `producerKey`. */
  readonly orderingKey: string | undefined
  readonly ttlS: number | undefined
  /** Whether the update goes to the bot's /test/ queue. */
  readonly isTest: boolean
}

const queryFields = ['ordering_key', 'ttl', 'test'] as const

/** The options in the query of a single push. A name that comes twice is a list and is refused. */
export function readPushQuery(query: Readonly<Record<string, unknown>>): PushOptions {
  refuseUnknown(query, queryFields)
  return {
    orderingKey: readOrderingKey(query['ordering_key']),
    ttlS: readTtlS(decimalIn(query['ttl'])),
    isTest: readIsTest(booleanIn(query['test'])),
  }
}

export function refuseUnknown(
  fields: Readonly<Record<string, unknown>>,
  known: readonly string[],
): void {
  for (const field in fields) {
    if (!known.includes(field)) {
      // What does not look like a name may be a token that got into the wrong place.
      const shown = /^\w{1,32}$/.test(field) ? `"${field}"` : 'a field of another name'
      throw refusal(shown, `only the fields ${known.join(', ')}`)
    }
  }
}

export function readOrderingKey(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string' && isShortText(value)) return value
  throw refusal('ordering_key', `a text of at most ${orderingKeyBytesMax} bytes or a number`)
}

export function readTtlS(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= ttlSMax) {
    return value
  }
  throw refusal('ttl', `a whole number of seconds from 1 to ${ttlSMax}`)
}

export function readIsTest(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false
  if (typeof value === 'boolean') return value
  throw refusal('test', 'true or false')
}

const printable = new RegExp(`^[\\x20-\\x7e]{1,${idempotencyKeyLengthMax}}$`)

export function readIdempotencyKey(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && printable.test(value)) return value
  throw refusal('idempotency_key', `1 to ${idempotencyKeyLengthMax} printable ASCII characters`)
}

type WithHeaders = Pick<IncomingMessage, 'headers' | 'headersDistinct'>

/** Of the Idempotency-Key header. Node joins what comes twice by commas: that would be a third key. */
export function readIdempotencyHeader(request: WithHeaders): string | undefined {
  const value = request.headers['idempotency-key']
  const isOne =
    typeof value !== 'string' ||
    !value.includes(',') ||
    request.headersDistinct['idempotency-key']?.length === 1
  if (!isOne) throw refusal('idempotency_key', 'to come once')
  return readIdempotencyKey(value)
}

export function refusal(field: string, expected: string): PostboteError {
  return new PostboteError('BAD_REQUEST', { detail: `${field}: expected ${expected}` })
}

/** A lone surrogate would be another key once it has been stored and read back. */
function isShortText(value: string): boolean {
  return Buffer.byteLength(value) <= orderingKeyBytesMax && !/\p{Surrogate}/u.test(value)
}

function decimalIn(value: unknown): unknown {
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['yes', true],
  ['1', true],
  ['false', false],
  ['no', false],
  ['0', false],
])

function booleanIn(value: unknown): unknown {
  return typeof value === 'string' ? (booleans.get(value.toLowerCase()) ?? value) : value
}
