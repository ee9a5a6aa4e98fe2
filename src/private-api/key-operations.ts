/** Describes the routes of key-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { scopes } from '../access/access.ts'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'

const { botId, count, orNull, time } = fieldSchemas

const tag = 'keys'
const path = '/v1/keys'

/** Returns the operations of these routes. */
export function keyOperations(): Operations {
  const { list, issued, revoked } = schemas()
  return {
    [`POST ${path}`]: {
      id: 'createKey',
      tag,
      summary: 'Makes a key of this API',
      description: 'A key cannot make a key that may do more than itself.',
      results: { 200: json(issued) },
      errors: ['KEY_EXISTS', 'TOO_MANY_ACCESS_KEYS', 'KEY_EXCEEDED'],
    },
    [`GET ${path}`]: {
      id: 'listKeys',
      tag,
      summary: 'Lists the keys, without the admin key',
      results: { 200: json(list) },
    },
    [`POST ${path}/:key_id/rotate`]: {
      id: 'rotateKey',
      tag,
      summary: 'Gives a key a new secret',
      description: 'The old secret stays valid for `overlap` seconds. Default: 0.',
      results: { 200: json(issued) },
      errors: ['UNKNOWN_KEY', 'KEY_EXCEEDED'],
    },
    [`DELETE ${path}/:key_id`]: {
      id: 'revokeKey',
      tag,
      summary: 'Ends a key and all keys that come from it, with their streams and sessions',
      results: { 200: json(revoked) },
      errors: ['UNKNOWN_KEY'],
    },
  }
}

/** The scopes of a key. */
export function scopesSchema(): TSchema {
  return Type.Array(Type.Enum([...scopes], { type: 'string' }))
}

function schemas(): Readonly<Record<'list' | 'issued' | 'revoked', TSchema>> {
  const keyId = Type.String({ description: 'The id of the key, which is the part after pbk_.' })
  const fields = {
    key_id: keyId,
    name: Type.String(),
    scopes: scopesSchema(),
    bots: orNull(Type.Array(botId())),
    updates_per_second: orNull(count('The limit of pushed updates.')),
    requests_per_second: orNull(count('The limit of requests.')),
    created_at: time('When the key was made.'),
    created_by: orNull(Type.String({ description: 'The id of the key that made this one.' })),
    expires: orNull(time('When the key ends.')),
    last_used: orNull(time('When the key was used last, some seconds late.')),
    old_secret_ends: orNull(time('When the secret before the last rotation ends.')),
  }
  const unreached = Type.Optional(
    count('Workers that could not be told. They take the change within seconds after they can be.'),
  )
  return {
    list: Type.Object(
      { keys: Type.Array(Type.Object(fields, { $id: 'Key' })) },
      { $id: 'KeyList', description: 'The keys, in the order of their ids.' },
    ),
    issued: Type.Object(
      {
        ...fields,
        key: Type.String({ description: 'The key itself. It is shown only this once.' }),
        unreached_workers: unreached,
      },
      { $id: 'IssuedKey', description: 'The key.' },
    ),
    revoked: Type.Object(
      {
        key_id: keyId,
        revoked: Type.Literal(true),
        also_revoked: Type.Optional(
          Type.Array(Type.String(), {
            description: 'The ids of the keys that came from it, which have ended with it.',
          }),
        ),
        unreached_workers: unreached,
      },
      { $id: 'RevokedKey', description: 'The key has ended.' },
    ),
  }
}
