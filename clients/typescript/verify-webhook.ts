/**
 * Checks the signature of a delivery to a webhook (Standard Webhooks; protocol.md §8.2), for programs that receive updates. What
 * a stranger sends makes the function return false, whatever it is; only unusable secrets are an error, because an empty one would
 * let everybody in.
 */
import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto'
import { isAnyArrayBuffer, isUint8Array } from 'node:util/types'
import { systemClock } from '../../src/kit/clock.ts'

/** Headers as the frameworks have them: of fetch, a Map, an object with names in any case, or the raw list of node:http. */
export type WebhookHeaders =
  | { get(name: string): unknown }
  | readonly string[]
  | Readonly<Record<string, unknown>>

export interface VerifyWebhookOptions {
  /** The timestamp may differ from the clock by so many seconds. Default: 300. */
  readonly toleranceS?: number | undefined
  /** The time in milliseconds since 1970. Default: now. */
  readonly nowMs?: number | undefined
}

/** As Standard Webhooks advises. */
const toleranceSDefault = 300
/** Only so many signatures are looked at. Chosen: the server sends four at most. */
const signaturesMax = 16

/**
 * Returns whether a delivery was signed with one of the secrets, for this body, within the tolerance.
 *
 * @param body - the bytes as they came; a text is taken as UTF-8. Anything else was not signed: frameworks leave an object, or
 *   nothing, for a Content-Type that they do not know
 * @param secrets - `whsec_...` (HMAC-SHA256) or `whpk_...` (ed25519); several while keys are rotated
 * @throws TypeError if there is no secret, or one of another form
 */
export function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secrets: string | readonly string[],
  options: VerifyWebhookOptions = {},
): boolean {
  const { toleranceS = toleranceSDefault, nowMs = systemClock.nowMs() } = options
  const keys = [secrets].flat().map(keyIn)
  if (keys.length === 0) throw new TypeError('secrets: expected at least one')
  const id = headerIn(headers, 'webhook-id')
  const sent = headerIn(headers, 'webhook-timestamp')
  const signatures = headerIn(headers, 'webhook-signature')
  if (id === undefined || sent === undefined || signatures === undefined) return false
  if (!isBytes(body)) return false
  // Written so that a time that is no number is refused.
  const isNow = Math.abs(nowMs / 1_000 - Number(sent)) <= toleranceS
  if (!/^\d{1,12}$/.test(sent) || !isNow) return false
  const signed = Buffer.concat([Buffer.from(`${id}.${sent}.`), Buffer.from(body)])
  const given = signatures.split(' ', signaturesMax)
  return keys.some((key) => given.some((signature) => isBy(key, signature, signed)))
}

function isBytes(body: unknown): boolean {
  return typeof body === 'string' || isUint8Array(body) || isAnyArrayBuffer(body)
}

type Key = { readonly secret: Buffer } | { readonly publicKey: KeyObject }

/** What comes before the 32 bytes of an ed25519 key in its DER form (RFC 8410). */
const ed25519Head = Buffer.from('302a300506032b6570032100', 'hex')

function keyIn(text: unknown): Key {
  const [, kind, base64 = ''] = /^(whsec|whpk)_([\w+/=-]+)$/.exec(String(text).trim()) ?? []
  const bytes = Buffer.from(base64, 'base64')
  if (kind === 'whsec' && bytes.length > 0) return { secret: bytes }
  if (kind === 'whpk' && bytes.length === 32) {
    const key = Buffer.concat([ed25519Head, bytes])
    return { publicKey: createPublicKey({ key, format: 'der', type: 'spki' }) }
  }
  // The text is not shown, because it may be most of a secret.
  throw new TypeError('secrets: expected whsec_... or whpk_... with a key in base64')
}

function isBy(key: Key, signature: string, signed: Buffer): boolean {
  if ('secret' in key) {
    const expected = Buffer.from(
      `v1,${createHmac('sha256', key.secret).update(signed).digest('base64')}`,
    )
    const given = Buffer.from(signature)
    return given.length === expected.length && timingSafeEqual(given, expected)
  }
  if (!/^v1a,[A-Za-z0-9+/]{86}==$/.test(signature)) return false
  return verify(null, signed, key.publicKey, Buffer.from(signature.slice(4), 'base64'))
}

/** Returns the value of a header that was sent once; the signatures may come in several. */
function headerIn(headers: WebhookHeaders, name: string): string | undefined {
  const values = valuesIn(headers, name)
    .flat()
    .filter((value) => typeof value === 'string')
  return name === 'webhook-signature' && values.length > 0
    ? values.join(' ')
    : values.length === 1
      ? values[0]
      : undefined
}

function valuesIn(headers: WebhookHeaders, name: string): readonly unknown[] {
  if (Array.isArray(headers)) {
    return headers.filter((_, at) => at % 2 === 1 && String(headers[at - 1]).toLowerCase() === name)
  }
  if ('get' in headers && typeof headers.get === 'function') return [headers.get(name)]
  return Object.entries(headers).flatMap(([each, value]) =>
    each.toLowerCase() === name ? [value] : [],
  )
}
