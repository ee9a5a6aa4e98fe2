/** The errors that calls can get, and their schema. */
import type { TSchema } from 'typebox'
import * as is from './words.ts'
import type { ErrorCode } from '../kit/errors.ts'
import type { OperationRow } from './operation.ts'

/** The codes that any call can get, with or without a key. */
export const openErrors = [
  'BAD_REQUEST',
  'BAD_HOST',
  'REQUEST_TIMEOUT',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
  'TOO_MANY_CONNECTIONS',
] as const satisfies readonly ErrorCode[]

/** The codes that any call with a key or a session can get: a request is checked, counted and forwarded before its route. */
export const commonErrors = [
  ...openErrors,
  'UNAUTHORIZED',
  'CROSS_SITE_REQUEST',
  'KEY_LACKS_SCOPE',
  'KEY_LACKS_BOT',
  'KEY_OVER_LIMIT',
  'KEYS_UNAVAILABLE',
  'NOT_FOUND',
  'VERB_NOT_ALLOWED',
  'REQUEST_TOO_LARGE',
  'UPDATE_TOO_LARGE',
  'TOO_MANY_REQUESTS',
  'TOO_MANY_BODIES',
  'STORE_UNAVAILABLE',
  'SHARD_BROKEN',
  'OUTCOME_UNKNOWN',
] as const satisfies readonly ErrorCode[]

/** Returns the codes that only this call and those with the same subject can get. */
export function ownErrors({ about, errors = [] }: OperationRow): readonly ErrorCode[] {
  return about === 'bot' || about === 'queue' ? ['UNKNOWN_BOT', ...errors] : errors
}

/**
 * Returns the schema of an error.
 *
 * @param kind - The name of the component, and the codes that it can have. Default: the schema of all error responses;
 *   each operation names the codes that it can get.
 */
export function errorSchema(kind?: {
  readonly name: string
  readonly codes: readonly ErrorCode[]
}): TSchema {
  const { name = 'Error', codes } = kind ?? {}
  const code = is.text({
    description: 'A stable code of docs/reference/errors.md.',
    ...(codes === undefined ? {} : { enum: codes }),
  })
  const message = is.text('A text for people. It may change.')
  return is.named(name, { error: is.object({ code, message }) })
}
