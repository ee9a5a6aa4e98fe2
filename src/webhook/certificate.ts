/**
 * An uploaded certificate: PEM, one or several, kept as text without anything that stands around them.
 * Nothing but certificates is stored: a private key uploaded by mistake is refused, not kept.
 */

import { X509Certificate } from 'node:crypto'
import { PostboteError } from '../errors.ts'
import { certificateBytesMax, certificatesMax } from '../limits.ts'
import { badWebhook } from './endpoint.ts'

const pemBlock = /-----BEGIN ([A-Z0-9 ]{1,64})-----[\s\S]*?-----END \1-----/g

/** The certificates in `upload` as PEM text; throws REQUEST_TOO_LARGE, or BAD_WEBHOOK with the reason. */
export function parseCertificate(upload: Buffer): string {
  if (upload.length > certificateBytesMax) {
    const detail = `at most ${certificateBytesMax} bytes of certificate are accepted`
    throw new PostboteError('REQUEST_TOO_LARGE', { detail })
  }
  const blocks = [...upload.toString('latin1').matchAll(pemBlock)]
  if (blocks.length === 0) throw badWebhook('certificate is not in PEM format')
  if (blocks.length > certificatesMax) throw badWebhook('certificate has too many parts')
  return `${blocks.map((block) => checked(block)).join('\n')}\n`
}

function checked(block: RegExpExecArray): string {
  if (block[1] !== 'CERTIFICATE') {
    throw badWebhook('certificate holds something that is not a certificate')
  }
  try {
    return new X509Certificate(block[0]).toString().trim()
  } catch (error) {
    throw badWebhook('certificate cannot be parsed', error)
  }
}
