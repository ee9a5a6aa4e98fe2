/** The calls about the keys that the deliveries of a bot are signed with. */
import { Type } from 'typebox'
import { fieldSchemas } from '../../api/field-schemas.ts'
import { botPath, declareOperations } from '../../api/operation.ts'

const { orNull, overlap, removedCount, time } = fieldSchemas

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
      Type.Object(
        {
          type: Type.Enum(['hmac-sha256', 'ed25519']),
          overlap: overlap(signingKeyOverlapSMax),
        },
        { additionalProperties: false },
      ),
    result: () =>
      Type.Object(
        {
          key_id: keyId(),
          type: keyType(),
          key: Type.String({
            description: 'The shared secret, or the public key. It is shown only this once.',
          }),
        },
        { $id: 'NewSigningKey', description: 'The key with what the receiver verifies with.' },
      ),
    errors: ['TOO_MANY_SIGNING_KEYS'],
  },
  listSigningKeys: {
    route: `GET ${all}`,
    scope: 'read',
    about: 'queue',
    summary: 'Lists the keys',
    result: () =>
      Type.Object(
        { signing_keys: Type.Array(signingKey()) },
        { $id: 'SigningKeyList', description: 'The keys that sign, the newest first.' },
      ),
  },
  removeSigningKeys: {
    route: `DELETE ${all}`,
    scope: 'manage',
    about: 'queue',
    summary: 'Removes all keys, which ends signing',
    result: () => removedCount(),
  },
  removeSigningKey: {
    route: `DELETE ${all}/:key_id`,
    scope: 'manage',
    about: 'queue',
    summary: 'Removes one key',
    result: () =>
      Type.Object(
        { key_id: keyId(), removed: Type.Literal(true) },
        { $id: 'RemovedSigningKey', description: 'The key that was removed.' },
      ),
    errors: ['UNKNOWN_SIGNING_KEY'],
  },
})

function signingKey() {
  return Type.Object(
    {
      key_id: keyId(),
      type: keyType(),
      created_at: time('When the key was added.'),
      ends_at: orNull(time('When the key ends.')),
    },
    { $id: 'SigningKey' },
  )
}

function keyId() {
  return Type.String({ description: 'The id of the key.' })
}

function keyType() {
  return Type.Enum(['hmac-sha256', 'ed25519'], { type: 'string' })
}
