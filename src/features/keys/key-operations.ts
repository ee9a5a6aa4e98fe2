/** The calls about the keys of the private API. */
import { Type } from 'typebox'
import { scopes } from '../../kit/rights.ts'
import { botIdMax, botIdMin } from '../../kit/limits.ts'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { declareOperations } from '../../api/operation.ts'

const { botId, count, orNull, overlap, perSecond, time } = fieldSchemas

const path = '/v1/keys'
/** With these, a name could pass for another one, or move the cursor of a terminal. */
const namelessCharacters = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}'

/** An old secret of a key may stay valid this long beside a new one, as with tokens (`tokenOverlapSMax`). */
const accessKeyOverlapSMax = 7 * 86_400

export const keyOperations = declareOperations('keys', {
  createKey: {
    route: `POST ${path}`,
    scope: 'all',
    about: 'keys',
    command: 'keys create',
    done: '{key}',
    more: '#keys',
    summary: 'Makes a key of this API',
    description: 'A key cannot make a key that may do more than itself.',
    body: () => newKey(),
    result: () => issuedKey(),
    errors: ['KEY_EXISTS', 'TOO_MANY_ACCESS_KEYS', 'KEY_EXCEEDED'],
  },
  listKeys: {
    route: `GET ${path}`,
    scope: 'all',
    about: 'keys',
    command: 'keys list',
    columns: [
      'key_id',
      'name',
      'scopes',
      'bots',
      'updates_per_second',
      'requests_per_second',
      'expires',
      'last_used',
    ],
    none: 'no keys but the admin key',
    summary: 'Lists the keys, without the admin key',
    result: () =>
      Type.Object(
        { keys: Type.Array(Type.Object(fields(), { $id: 'Key' })) },
        { $id: 'KeyList', description: 'The keys, in the order of their ids.' },
      ),
  },
  rotateKey: {
    route: `POST ${path}/:key_id/rotate`,
    scope: 'all',
    about: 'keys',
    command: 'keys rotate',
    done: '{key}',
    summary: 'Gives a key a new secret',
    description: 'The old secret stays valid for `overlap` seconds. Default: 0.',
    body: () =>
      orNull(
        Type.Object({ overlap: overlap(accessKeyOverlapSMax) }, { additionalProperties: false }),
      ),
    result: () => issuedKey(),
    errors: ['UNKNOWN_KEY', 'KEY_EXCEEDED'],
  },
  revokeKey: {
    route: `DELETE ${path}/:key_id`,
    scope: 'all',
    about: 'keys',
    command: 'keys revoke',
    done: 'revoked {key_id}',
    summary: 'Ends a key and all keys that come from it, with their streams and sessions',
    result: () =>
      Type.Object(
        {
          key_id: keyId(),
          revoked: Type.Literal(true),
          also_revoked: Type.Optional(
            Type.Array(Type.String(), {
              description: 'The ids of the keys that came from it, which have ended with it.',
            }),
          ),
          unreached_workers: unreachedWorkers(),
        },
        { $id: 'RevokedKey', description: 'The key has ended.' },
      ),
    errors: ['UNKNOWN_KEY'],
  },
})

/** A key may be for this many bots at most. Chosen: a tenant with its bots; 1,000 keys of this size take 10 MB in a worker. */
const accessKeyBotsMax = 1_000
/** The largest limit of a key per second: more than one server can do. A key that should do nothing is revoked. */
const accessKeyRateMax = 1_000_000
/** A name of a key has at most this many characters: enough for a program, its place and a date. */
const accessKeyNameLengthMax = 64
/** A key ends at this Unix time in seconds at the latest: below the last date of JavaScript, and far beyond any use. */
const accessKeyEndSMax = 2 ** 40

function newKey() {
  const rate = Type.Integer({ minimum: 1, maximum: accessKeyRateMax })
  return Type.Object(
    {
      name: Type.String({
        pattern: `^[^${namelessCharacters}]{1,${accessKeyNameLengthMax}}$`,
        description: `1 to ${accessKeyNameLengthMax} characters, no control or invisible characters and none that change the direction of writing`,
      }),
      scopes: fieldSchemas.scopes({ minItems: 1, maxItems: scopes.length, uniqueItems: true }),
      bots: Type.Optional(
        Type.Array(Type.Integer({ minimum: botIdMin, maximum: botIdMax }), {
          minItems: 1,
          maxItems: accessKeyBotsMax,
          uniqueItems: true,
          description: 'The only bots that the key is for. By default it is for all.',
        }),
      ),
      updates_per_second: Type.Optional(rate),
      requests_per_second: Type.Optional(rate),
      expires: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: accessKeyEndSMax,
          description: 'When the key ends, in Unix seconds.',
        }),
      ),
    },
    { additionalProperties: false },
  )
}

function issuedKey() {
  return Type.Object(
    {
      ...fields(),
      key: Type.String({ description: 'The key itself. It is shown only this once.' }),
      unreached_workers: unreachedWorkers(),
    },
    { $id: 'IssuedKey', description: 'The key.' },
  )
}

function keyId() {
  return Type.String({ description: 'The id of the key, which is the part after pbk_.' })
}

function fields() {
  return {
    key_id: keyId(),
    name: Type.String(),
    scopes: fieldSchemas.scopes(),
    bots: orNull(Type.Array(botId()), 'all'),
    updates_per_second: orNull(perSecond('The limit of pushed updates.')),
    requests_per_second: orNull(perSecond('The limit of requests.')),
    created_at: time('When the key was made.'),
    created_by: orNull(Type.String({ description: 'The id of the key that made this one.' })),
    expires: orNull(time('When the key ends.')),
    last_used: orNull(time('When the key was used last, some seconds late.')),
    old_secret_ends: orNull(time('When the secret before the last rotation ends.')),
  }
}

function unreachedWorkers() {
  return Type.Optional(
    count('Workers that could not be told. They take the change within seconds after they can be.'),
  )
}
