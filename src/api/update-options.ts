/**
 * Validates the options of a push, in the query of a single push and in the header of a pair (protocol.md §9).
 *
 * An unknown field is refused by name: a misspelled `ordering_key` would silently lose the order, and a misspelled
 * `test` would reach real users. Empty text and null mean that the field is absent. The exception is an empty
 * idempotency key, which is refused, because its producer would wrongly believe that repetitions are safe.
 */
import type { IncomingMessage } from 'node:http'
import { PostboteError } from '../kit/errors.ts'
import { orderingKeyBytesMax, ttlSMax } from '../kit/limits.ts'
import { idempotencyKeyLengthMax } from './limits.ts'
import { readTraceparent } from '../kit/tracing/traceparent.ts'

/** The options that both forms have. */
export interface UpdateOptions {
  /** As the producer sent it; see `producerKey`. */
  readonly orderingKey: string | undefined
  /** Time to live in seconds; undefined for that of the update type. */
  readonly ttlS: number | undefined
  /** Whether the update goes to the bot's /test/ queue. */
  readonly isTest: boolean
  /** Whether the update must have the fields that bot frameworks need. */
  readonly isValidated: boolean
}

const queryFields = ['ordering_key', 'ttl', 'test', 'validate'] as const

/**
 * Reads the options in the query of a single push. A name that occurs twice has a list as its value and is refused.
 *
 * @param query - The parsed query.
 * @throws BAD_REQUEST that names the field and what is expected.
 */
export function readPushQuery(query: Readonly<Record<string, unknown>>): UpdateOptions {
  refuseUnknown(query, queryFields)
  return {
    orderingKey: readOrderingKey(query['ordering_key']),
    ttlS: readTtlS(decimalIn(query['ttl'])),
    isTest: readIsTest(booleanIn(query['test'])),
    isValidated: readIsValidated(query['validate']),
  }
}

/**
 * Refuses fields with unknown names.
 *
 * @param fields - The fields of a query or a header.
 * @param known - The names that are allowed.
 * @throws BAD_REQUEST. It shows the name only if it looks like one.
 */
export function refuseUnknown(
  fields: Readonly<Record<string, unknown>>,
  known: readonly string[],
): void {
  for (const field in fields) {
    if (known.includes(field)) continue
    throw new PostboteError('BAD_REQUEST', { detail: onlyFields(field, known) })
  }
}

/** Says that a field has an unknown name. */
export function onlyFields(field: string, known: readonly string[]): string {
  // Anything else may be a token in the wrong place.
  const shown = /^\w{1,32}$/.test(field) ? `"${field}"` : 'an unknown field'
  return `${shown}: expected only the fields ${known.join(', ')}`
}

/**
 * Validates an ordering key.
 *
 * @param value - The value of the field.
 * @returns The key, or undefined if it is absent.
 * @throws BAD_REQUEST if it is not text of at most `orderingKeyBytesMax` bytes in UTF-8.
 */
export function readOrderingKey(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string' && isShortText(value)) return value
  throw refusal(
    'ordering_key',
    `a string of at most ${orderingKeyBytesMax} bytes, or a number`,
    value,
  )
}

/**
 * Validates a time to live.
 *
 * @param value - The value of the field.
 * @returns Seconds, or undefined if it is absent.
 * @throws BAD_REQUEST if it is not a whole number from 1 to `ttlSMax`.
 */
export function readTtlS(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= ttlSMax) {
    return value
  }
  throw refusal('ttl', `a whole number of seconds from 1 to ${ttlSMax}`, value)
}

/**
 * Validates the selection of the /test/ queue.
 *
 * @param value - The value of the field.
 * @returns Whether the update is for the /test/ queue.
 * @throws BAD_REQUEST if it is not a boolean.
 */
export function readIsTest(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false
  if (typeof value === 'boolean') return value
  throw refusal('test', 'true or false', value)
}

/**
 * Validates the choice of a validation. `telegram` is the only one.
 *
 * @param value - The value of the field.
 * @returns Whether the fields that bot frameworks need are checked.
 * @throws BAD_REQUEST if it is another value.
 */
export function readIsValidated(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false
  if (value === 'telegram') return true
  throw refusal('validate', '"telegram"')
}

/**
 * Validates the place in a trace of a pair.
 *
 * @param value - The value of the field.
 * @returns The place, or undefined if it is absent.
 * @throws BAD_REQUEST if it is not valid as a `traceparent`.
 */
export function readTrace(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const traceparent = readTraceparent(value)
  if (traceparent !== undefined) return traceparent
  throw refusal('traceparent', '00-<32 digits>-<16 digits>-<2 digits>, hexadecimal in lower case')
}

const printable = new RegExp(`^[\\x20-\\x7e]{1,${idempotencyKeyLengthMax}}$`)

/**
 * Validates an idempotency key.
 *
 * @param value - The value of the field or header.
 * @returns The key, or undefined if it is absent.
 * @throws BAD_REQUEST if it is not 1 to `idempotencyKeyLengthMax` printable ASCII characters.
 */
export function readIdempotencyKey(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && printable.test(value)) return value
  throw refusal('idempotency_key', `1 to ${idempotencyKeyLengthMax} printable ASCII characters`)
}

/** The options that only a single push has in its headers. */
export interface PushHeaders {
  /** The producer's key. A later push with the same key gets the result of this one. */
  readonly idempotencyKey: string | undefined
  /** The place of the producer in its trace. */
  readonly traceparent?: string | undefined
}

type WithHeaders = Pick<IncomingMessage, 'headers' | 'headersDistinct'>

/**
 * Reads the Idempotency-Key header. Node joins repeated headers with commas, which would make another key.
 *
 * @param request - The request with its headers.
 * @returns The key, or undefined if there is none.
 * @throws BAD_REQUEST if the header occurs more than once or its value is not a key.
 */
export function readIdempotencyHeader(request: WithHeaders): string | undefined {
  const value = request.headers['idempotency-key']
  const isOne =
    typeof value !== 'string' ||
    !value.includes(',') ||
    request.headersDistinct['idempotency-key']?.length === 1
  if (!isOne) throw refusal('idempotency_key', 'a single value')
  return readIdempotencyKey(value)
}

/**
 * Reads the options in the headers of a single push.
 *
 * @param isTraced - Whether updates are traced. A place in a trace that is not valid is ignored, as the standard says.
 * @throws BAD_REQUEST as `readIdempotencyHeader`.
 */
export function readPushHeaders(request: WithHeaders, isTraced: boolean): PushHeaders {
  const idempotencyKey = readIdempotencyHeader(request)
  if (!isTraced) return { idempotencyKey }
  return { idempotencyKey, traceparent: readTraceparent(request.headers['traceparent']) }
}

/** A longer text may be a token or a key in the wrong field. */
const shownLengthMax = 32

/** Returns what an error shows of a value that a client sent. */
export function shownValue(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return 'an object'
  const text = JSON.stringify(value)
  return text.length > shownLengthMax ? `a value of ${text.length} characters` : text
}

/**
 * Creates the error for a field.
 *
 * @param field - The field's name.
 * @param expected - What is expected, as the end of a sentence.
 * @param got - The value, unless the sentence tells enough.
 * @returns A BAD_REQUEST error.
 */
export function refusal(
  field: string,
  expected: string,
  ...got: readonly unknown[]
): PostboteError {
  const end = got.length === 0 ? '' : `, got ${shownValue(got[0])}`
  return new PostboteError('BAD_REQUEST', { detail: `${field}: expected ${expected}${end}` })
}

/** A lone surrogate would become another key by being stored and read back. */
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
