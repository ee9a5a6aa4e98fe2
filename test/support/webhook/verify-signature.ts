/** Verifies a delivery's signature as its receiver would, with headers and body as they arrived. */
import { createPublicKey, verify } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { Webhook } from 'standardwebhooks'

/** The SubjectPublicKeyInfo of an ed25519 key, up to the key itself. */
const spkiPrefix = Buffer.from('302a300506032b6570032100', 'hex')

/** Throws if no signature belongs to the key (`whsec_...` or `whpk_...`) or the timestamp is too old. */
export function verifySignature(key: string, headers: IncomingHttpHeaders, body: string): void {
  if (key.startsWith('whsec_')) {
    const flat = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
    new Webhook(key).verify(body, Object.fromEntries(flat))
    return
  }
  const raw = Buffer.from(key.slice('whpk_'.length), 'base64')
  const publicKey = createPublicKey({
    key: Buffer.concat([spkiPrefix, raw]),
    format: 'der',
    type: 'spki',
  })
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': list } = headers
  const signed = Buffer.from(`${String(id)}.${String(timestamp)}.${body}`)
  const isRight = String(list)
    .split(' ')
    .filter((signature) => signature.startsWith('v1a,'))
    .some((signature) => verify(null, signed, publicKey, Buffer.from(signature.slice(4), 'base64')))
  if (!isRight) throw new Error('No matching signature found')
}

export function isSignedWith(key: string, headers: IncomingHttpHeaders, body: string): boolean {
  try {
    verifySignature(key, headers, body)
    return true
  } catch {
    return false
  }
}
