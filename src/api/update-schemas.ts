/** The schemas of updates and of what a push returns, which the calls of several features have. */
import { type TUnsafe, Type } from 'typebox'
import type { ErrorCode } from '../kit/errors.ts'
import { type UpdateType, updateTypes } from '../kit/update-types.ts'
import * as is from './words.ts'

/** The codes of a push, in addition to those of every call (protocol.md §9.3). */
export const pushErrors = [
  'BAD_UPDATE',
  'UNKNOWN_BOT',
  'BOT_NOT_SERVED',
  'IDEMPOTENCY_MISMATCH',
  'TOO_MANY_KEYS',
  'QUEUE_FULL',
  'DISK_LOW',
  'ID_SPACE_EXHAUSTED',
] as const satisfies readonly ErrorCode[]

/** Returns the schema of what a push returns. */
export function pushResult() {
  const duplicate = is.exactly(true, 'An earlier push with this key stored it.')
  const stored = is.named('StoredUpdate', 'The update is on disk.', {
    update_id: is.updateId(),
    duplicate: is.optional(duplicate),
  })
  const filtered = is.named(
    'FilteredUpdate',
    'The bot does not want this type; nothing was stored.',
    { filtered: is.exactly(true) },
  )
  return is.either([stored, filtered], {
    $id: 'PushResult',
    description: 'The result of the push.',
  })
}

/** An update without its id. It has only one of these fields. */
type AnyUpdate = { readonly [Type in UpdateType]?: object }

/** Returns the schema of an update without its id. */
export function updateSchema(): TUnsafe<AnyUpdate> {
  const types = updateTypes.map((type) => [type, is.optional(is.object({}))])
  return Type.Unsafe<AnyUpdate>(
    Type.Object(Object.fromEntries(types), {
      $id: 'Update',
      description: 'One object with one of the update types as its only key.',
      minProperties: 1,
      maxProperties: 1,
      additionalProperties: false,
    }),
  )
}
