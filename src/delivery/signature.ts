/**
 * The headers that prove to a receiver that a delivery comes from this server and is unchanged (Standard Webhooks):
 *
 *     webhook-id         the same for every attempt of an update, so that receivers can drop repetitions; no other
 *                        update has it (protocol.md §8.2)
 *     webhook-timestamp  seconds, of this attempt
 *     webhook-signature  `v1,<base64>` (HMAC-SHA256), `v1a,<base64>` (ed25519), one for each valid key
 *
 * The signed text is `id.timestamp.body`. The source is asked for the keys at each delivery, and keys are prepared only
 * when they have changed. So a new key takes effect with the next request, and a bot without keys costs one comparison.
 */
import { createHmac, createPrivateKey, createSecretKey, type KeyObject, sign } from 'node:crypto'
import { signatureHeaderNames } from '../http/protocol-headers.ts'
import type { Clock } from '../kit/clock.ts'
import type { StoredSigningKey } from '../shard/records/bot-record.ts'

/** The keys of a queue and the prefix of its ids. */
export interface SignatureSource {
  /** The prefix of the update's id in `webhook-id`, needed because update ids are unique only within one bot. */
  readonly idPrefix: string
  /** The clock of the timestamp, which the receiver compares with its own. Default: the one by which keys end. */
  readonly clock?: Pick<Clock, 'nowMs'>
  /** Returns the keys. It returns the same list as long as nothing has changed. */
  keys(): readonly StoredSigningKey[] | undefined
}

interface PreparedKey {
  readonly type: StoredSigningKey['type']
  readonly key: KeyObject
  readonly endsAtMs: number
}

/** Creates the signature headers of one webhook's deliveries. */
export class SignatureHeaders {
  readonly #source: SignatureSource
  readonly #clock: Clock
  #stored: readonly StoredSigningKey[] | undefined
  #prepared: readonly PreparedKey[] = []

  constructor(source: SignatureSource, clock: Clock) {
    this.#source = source
    this.#clock = clock
  }

  /**
   * Signs one delivery.
   *
   * @param body - the exact bytes of the request's body
   * @returns header names and values in alternation; undefined if no key is valid now
   */
  of(updateId: number, body: Buffer): string[] | undefined {
    const stored = this.#source.keys()
    if (stored !== this.#stored) {
      this.#stored = stored
      this.#prepared = (stored ?? []).map(prepare)
    }
    if (this.#prepared.length === 0) return undefined

    const nowMs = this.#clock.nowMs()
    const id = `${this.#source.idPrefix}${updateId}`
    const timestamp = Math.floor((this.#source.clock?.nowMs() ?? nowMs) / 1_000)
    const head = `${id}.${timestamp}.`
    const signatures: string[] = []
    for (const key of this.#prepared) {
      if (nowMs < key.endsAtMs) signatures.push(signatureOf(key, head, body))
    }
    if (signatures.length === 0) return undefined
    const [idName, timestampName, signatureName] = signatureHeaderNames
    return [idName, id, timestampName, `${timestamp}`, signatureName, signatures.join(' ')]
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
