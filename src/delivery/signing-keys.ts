/**
 * The keys that sign a bot's deliveries: how one is created, and what happens to the others when one is added. The list
 * is stored with the queue's settings. The current key comes first; those after it expire.
 *
 *     add with an overlap:  [current, old*]  ->  [new, current*, old*]     * ends at a given time
 *
 * A key is shown once, in the form that verifying libraries read (Standard Webhooks):
 *
 *     hmac-sha256   whsec_<base64 of 32 random bytes>        shared with the receiver
 *     ed25519       whpk_<base64 of the 32-byte public key>  the private key never leaves this server
 */
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { PostboteError } from '../kit/errors.ts'
import type { StoredSigningKey } from '../shard/records/bot-record.ts'

export type SigningKeyType = StoredSigningKey['type']
export type SigningKeys = readonly StoredSigningKey[]

export interface NewSigningKey {
  readonly stored: StoredSigningKey
  /** What the receiver verifies with. */
  readonly shown: string
}

/** The bytes before the 32 bytes of an ed25519 key in its PKCS #8 form (RFC 8410). */
const ed25519Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const keyBytes = 32
const keyIdBytes = 9

/** Creates a key. `randomBytes` must be a CSPRNG (node:crypto's). */
export function createSigningKey(
  type: SigningKeyType,
  from: { readonly nowMs: number; readonly randomBytes: (count: number) => Buffer },
): NewSigningKey {
  const id = `key_${from.randomBytes(keyIdBytes).toString('base64url')}`
  const seed = from.randomBytes(keyBytes)
  assert(seed.length === keyBytes, 'a key is drawn in full')
  const secret = type === 'ed25519' ? Buffer.concat([ed25519Prefix, seed]) : seed
  const shown = type === 'ed25519' ? `whpk_${publicKeyOf(secret)}` : `whsec_${base64(seed)}`
  return { stored: { id, type, secret: base64(secret), createdAtMs: from.nowMs }, shown }
}

/** Returns the keys that sign at `nowMs`. */
export function livingKeys(keys: SigningKeys, nowMs: number): SigningKeys {
  return keys.filter(({ endsAtMs = Infinity }) => nowMs < endsAtMs)
}

/**
 * This many keys of a bot sign at a time: one of each type, and those that they replace. Each key makes the request
 * longer.
 */
const signingKeysMax = 4

/**
 * Adds a key as the current one. The former current key signs for another `overlapS` seconds. Throws
 * TOO_MANY_SIGNING_KEYS.
 */
export function withKey(
  keys: SigningKeys,
  added: StoredSigningKey,
  at: { readonly overlapS: number; readonly nowMs: number },
): SigningKeys {
  const endsAtMs = at.nowMs + at.overlapS * 1_000
  const rest = livingKeys(
    keys.map((key) => (key.endsAtMs === undefined ? { ...key, endsAtMs } : key)),
    at.nowMs,
  )
  if (rest.length >= signingKeysMax) throw new PostboteError('TOO_MANY_SIGNING_KEYS')
  return [added, ...rest]
}

/** Removes a key. Throws UNKNOWN_SIGNING_KEY. */
export function withoutKey(keys: SigningKeys, id: string, nowMs: number): SigningKeys {
  const living = livingKeys(keys, nowMs)
  const rest = living.filter((key) => key.id !== id)
  if (rest.length === living.length) throw new PostboteError('UNKNOWN_SIGNING_KEY')
  return rest
}

function publicKeyOf(pkcs8: Buffer): string {
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  // The last 32 bytes of the SubjectPublicKeyInfo are the key itself.
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  return base64(spki.subarray(-keyBytes))
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64')
}
