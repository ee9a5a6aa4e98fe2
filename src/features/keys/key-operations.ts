/** The calls about the keys of the private API. */
import { scopes } from '../../kit/rights.ts'
import { botIdMax, botIdMin } from '../../kit/limits.ts'
import * as is from '../../api/words.ts'
import { declareOperations } from '../../api/operation.ts'

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
    summary: 'Creates a key of this API',
    description: 'A key cannot create a key that may do more than itself.',
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
      is.named('KeyList', 'The keys, in the order of their ids.', {
        keys: is.list(is.named('Key', fields())),
      }),
  },
  rotateKey: {
    route: `POST ${path}/:key_id/rotate`,
    scope: 'all',
    about: 'keys',
    command: 'keys rotate',
    done: '{key}',
    summary: 'Rotates a key: gives it a new secret',
    description: 'The old secret stays valid for `overlap` seconds. Default: 0.',
    body: () => is.orNull(is.only({ overlap: is.overlap(accessKeyOverlapSMax) })),
    result: () => issuedKey(),
    errors: ['UNKNOWN_KEY', 'KEY_EXCEEDED'],
  },
  revokeKey: {
    route: `DELETE ${path}/:key_id`,
    scope: 'all',
    about: 'keys',
    command: 'keys revoke',
    done: 'revoked {key_id}',
    summary: 'Revokes a key and all keys that come from it, with their streams and sessions',
    result: () =>
      is.named('RevokedKey', 'The key has ended.', {
        key_id: keyId(),
        revoked: is.exactly(true),
        also_revoked: is.optional(
          is.list(is.text(), 'The ids of the keys that came from it, which have ended with it.'),
        ),
        unreached_workers: unreachedWorkers(),
      }),
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
  const rate = is.integer({ minimum: 1, maximum: accessKeyRateMax })
  return is.only({
    name: is.text(
      `1 to ${accessKeyNameLengthMax} characters, no control or invisible characters and none that change the direction of writing`,
      { pattern: `^[^${namelessCharacters}]{1,${accessKeyNameLengthMax}}$` },
    ),
    scopes: is.scopeList({ minItems: 1, maxItems: scopes.length, uniqueItems: true }),
    bots: is.optional(
      is.list(
        is.integer({ minimum: botIdMin, maximum: botIdMax }),
        'The only bots that the key is for. By default it is for all.',
        { minItems: 1, maxItems: accessKeyBotsMax, uniqueItems: true },
      ),
    ),
    updates_per_second: is.optional(rate),
    requests_per_second: is.optional(rate),
    expires: is.optional(
      is.integer('When the key ends, in Unix seconds.', { minimum: 0, maximum: accessKeyEndSMax }),
    ),
  })
}

function issuedKey() {
  return is.named('IssuedKey', 'The key.', {
    ...fields(),
    key: is.text('The key itself. It is shown only this once.'),
    unreached_workers: unreachedWorkers(),
  })
}

function keyId() {
  return is.text('The id of the key, which is the part after pbk_.')
}

function fields() {
  return {
    key_id: keyId(),
    name: is.name(),
    scopes: is.scopeList(),
    bots: is.orNull(is.list(is.botId()), 'all'),
    updates_per_second: is.orNull(is.perSecond('The limit of pushed updates.')),
    requests_per_second: is.orNull(is.perSecond('The limit of requests.')),
    created_at: is.time('When the key was made.'),
    created_by: is.orNull(is.text('The id of the key that made this one.')),
    expires: is.orNull(is.time('When the key ends.')),
    last_used: is.orNull(is.time('When the key was used last, some seconds late.')),
    old_secret_ends: is.orNull(is.time('When the secret before the last rotation ends.')),
  }
}

function unreachedWorkers() {
  return is.optional(
    is.count(
      'Workers that could not be told. They take the change within seconds after they can be.',
    ),
  )
}
