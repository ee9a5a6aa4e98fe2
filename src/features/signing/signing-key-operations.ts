/** The calls about the keys that the deliveries of a bot are signed with. */
import { Type } from 'typebox'
import * as is from '../../api/words.ts'
import { botPath, declareOperations } from '../../api/operation.ts'

const all = `${botPath}/signing-keys` as const

/**
 * An old signing key may sign this long beside a new one, as with tokens (`tokenOverlapSMax`): a week is enough to bring
 * a new key to every receiver.
 */
const signingKeyOverlapSMax = 7 * 86_400

export const signingKeyOperations = declareOperations('signing keys', {
  addSigningKey: {
    route: `POST ${all}`,
    scope: 'manage',
    about: 'queue',
    summary: 'Adds a key that the deliveries are signed with',
    description: 'The previous key continues to sign for `overlap` seconds. Default: 0.',
    body: () =>
      is.only({
        type: Type.Enum(['hmac-sha256', 'ed25519']),
        overlap: is.overlap(signingKeyOverlapSMax),
      }),
    result: () =>
      is.named('NewSigningKey', 'The key with what the receiver verifies with.', {
        key_id: keyId(),
        type: keyType(),
        key: is.text('The shared secret, or the public key. It is shown only this once.'),
      }),
    errors: ['TOO_MANY_SIGNING_KEYS'],
  },
  listSigningKeys: {
    route: `GET ${all}`,
    scope: 'read',
    about: 'queue',
    summary: 'Lists the keys',
    result: () =>
      is.named('SigningKeyList', 'The keys that sign, the newest first.', {
        signing_keys: is.list(signingKey()),
      }),
  },
  removeSigningKeys: {
    route: `DELETE ${all}`,
    scope: 'manage',
    about: 'queue',
    summary: 'Removes all keys, which ends signing',
    result: () => is.removedCount(),
  },
  removeSigningKey: {
    route: `DELETE ${all}/:key_id`,
    scope: 'manage',
    about: 'queue',
    summary: 'Removes one key',
    result: () =>
      is.named('RemovedSigningKey', 'The key that was removed.', {
        key_id: keyId(),
        removed: is.exactly(true),
      }),
    errors: ['UNKNOWN_SIGNING_KEY'],
  },
})

function signingKey() {
  return is.named('SigningKey', {
    key_id: keyId(),
    type: keyType(),
    created_at: is.time('When the key was added.'),
    ends_at: is.orNull(is.time('When the key ends.')),
  })
}

function keyId() {
  return is.text('The id of the key.')
}

function keyType() {
  return is.oneOf(['hmac-sha256', 'ed25519'])
}
