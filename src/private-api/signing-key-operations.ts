/** Describes the routes of signing-key-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'

const { orNull, removedCount, time } = fieldSchemas

const tag = 'signing keys'
const path = '/v1/bots/:id/signing-keys'

/** Returns the operations of these routes. */
export function signingKeyOperations(): Operations {
  const { list, created, removed } = schemas()
  return {
    [`POST ${path}`]: {
      id: 'addSigningKey',
      tag,
      summary: 'Adds a key that the deliveries are signed with',
      description: 'The previous key continues to sign for `overlap` seconds. Default: 0.',
      results: { 200: json(created) },
      errors: ['UNKNOWN_BOT', 'TOO_MANY_SIGNING_KEYS'],
    },
    [`GET ${path}`]: {
      id: 'listSigningKeys',
      tag,
      summary: 'Lists the keys',
      results: { 200: json(list) },
      errors: ['UNKNOWN_BOT'],
    },
    [`DELETE ${path}`]: {
      id: 'removeSigningKeys',
      tag,
      summary: 'Removes all keys, which ends signing',
      results: { 200: json(removedCount()) },
      errors: ['UNKNOWN_BOT'],
    },
    [`DELETE ${path}/:key_id`]: {
      id: 'removeSigningKey',
      tag,
      summary: 'Removes one key',
      results: { 200: json(removed) },
      errors: ['UNKNOWN_BOT', 'UNKNOWN_SIGNING_KEY'],
    },
  }
}

function schemas(): Readonly<Record<'list' | 'created' | 'removed', TSchema>> {
  const keyId = Type.String({ description: 'The id of the key.' })
  const type = Type.Enum(['hmac-sha256', 'ed25519'], { type: 'string' })
  const key = Type.Object(
    {
      key_id: keyId,
      type,
      created_at: time('When the key was added.'),
      ends_at: orNull(time('When the key ends.')),
    },
    { $id: 'SigningKey' },
  )
  const shown = Type.String({
    description: 'The shared secret, or the public key. It is shown only this once.',
  })
  return {
    list: Type.Object(
      { signing_keys: Type.Array(key) },
      { $id: 'SigningKeyList', description: 'The keys that sign, the newest first.' },
    ),
    created: Type.Object(
      { key_id: keyId, type, key: shown },
      { $id: 'NewSigningKey', description: 'The key with what the receiver verifies with.' },
    ),
    removed: Type.Object(
      { key_id: keyId, removed: Type.Literal(true) },
      { $id: 'RemovedSigningKey', description: 'The key that was removed.' },
    ),
  }
}
