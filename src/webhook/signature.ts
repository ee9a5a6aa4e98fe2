/**
 * The headers by which a receiver knows that a delivery is this server's and whole (Standard Webhooks):
 *
 *     webhook-id         the same at every attempt for an update, for receivers that drop repetitions
 *     webhook-timestamp  seconds, of this attempt
 *     webhook-signature  `v1,<base64>` (HMAC-SHA256), `v1a,<base64>` (ed25519), one for each living key
 *
 * Signed is `id.timestamp.body`. The keys are asked for at each delivery and prepared when they have changed, so
 * that a new key is in effect with the next request and a bot without keys pays for one comparison.
 */
import { createHmac, createPrivateKey, createSecretKey, type KeyObject, sign } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { StoredSigningKey } from '../shard/bot-record.ts'

/** What is signed with, and for whom. */
export interface SignatureSource {
  /** Stands before the update's id in `webhook-id`: update ids alone are one bot's. */
  readonly idPrefix: string
  /** The same list as long as nothing has changed. */
  keys(): readonly StoredSigningKey[] | undefined
}

interface PreparedKey {
  readonly type: StoredSigningKey['type']
  readonly key: KeyObject
  readonly endsAtMs: number
}

export class SignatureHeaders {
  readonly #source: SignatureSource
  readonly #clock: Clock
  #stored: readonly StoredSigningKey[] | undefined
  #prepared: readonly PreparedKey[] = []

  constructor(source: SignatureSource, clock: Clock) {
    this.#source = source
    this.#clock = clock
  }

  /** Names and values in turn; undefined where no key signs now. */
  of(updateId: number, body: Buffer): string[] | undefined {
    const stored = this.#source.keys()
    if (stored !== this.#stored) {
      this.#stored = stored
      this.#prepared = (stored ?? []).map(prepare)
    }
    if (this.#prepared.length === 0) return undefined

    const nowMs = this.#clock.nowMs()
    const id = `${this.#source.idPrefix}${updateId}`
    const timestamp = Math.floor(nowMs / 1_000)
    const head = `${id}.${timestamp}.`
    const signatures: string[] = []
    for (const key of this.#prepared) {
      if (nowMs < key.endsAtMs) signatures.push(signatureOf(key, head, body))
    }
    if (signatures.length === 0) return undefined
    return [
      'webhook-id',
      id,
      'webhook-timestamp',
      `${timestamp}`,
      'webhook-signature',
      signatures.join(' '),
    ]
  }
}

function prepare({ type, secret, endsAtMs = Infinity }: StoredSigningKey): PreparedKey {
  const bytes = Buffer.from(secret, 'base64')
  const key =
    type === 'ed25519'
      ? createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' })
      : createSecretKey(bytes)
  return { type, key, endsAtMs }
}

function signatureOf({ type, key }: PreparedKey, head: string, body: Buffer): string {
  if (type === 'ed25519') {
    const signed = Buffer.concat([Buffer.from(head), body])
    return `v1a,${sign(null, signed, key).toString('base64')}`
  }
  return `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`
}
