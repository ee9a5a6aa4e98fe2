/**
 * Reads an uploaded certificate: PEM, one or several, kept as text without anything around them. Only certificates are
 * stored: a private key uploaded by mistake is refused.
 *
 *   upload --readCertificates--> PEM in one form --same as before?--> nothing to do
 *                                                --checkCertificates--> trust roots
 *
 * Reading searches for at most 16 blocks and costs little more than copying the bytes, so each upload can be compared
 * with the present certificate. Parsing X.509 costs more and happens after the limit of one setWebhook a second.
 */
import { X509Certificate } from 'node:crypto'
import { PostboteError } from '../../kit/errors.ts'
import { badWebhook } from './endpoint.ts'
import { kib, mib } from '../../kit/limits.ts'

const anyHeader = Buffer.from('-----BEGIN ')
const header = '-----BEGIN CERTIFICATE-----'
const footer = '-----END CERTIFICATE-----'
/** The line length that OpenSSL writes. */
const lineLength = 64

/** An uploaded certificate may have this many bytes. [ref] */
export const certificateBytesMax = 3 * mib
/** An upload may have this many certificates: a usual chain has three or four. */
export const certificatesMax = 16
/** All certificates of an upload may have this many bytes of PEM: four of the largest size, and many more usual ones. */
export const certificateBlocksBytesMax = 64 * kib

/**
 * Extracts the certificates of an upload. The result is the same text for the same certificates, whatever line ends and
 * blanks the upload contains. The certificates are not parsed.
 *
 * @param upload - the uploaded file, at most 3 MiB
 * @returns PEM text
 * @throws REQUEST_TOO_LARGE, or BAD_WEBHOOK with the reason.
 */
export function readCertificates(upload: Buffer): string {
  if (upload.length > certificateBytesMax) {
    const detail = `at most ${certificateBytesMax} bytes of certificate are accepted`
    throw new PostboteError('REQUEST_TOO_LARGE', { detail })
  }
  let pem = ''
  let count = 0
  let start = upload.indexOf(anyHeader)
  while (start !== -1) {
    if (count === certificatesMax) throw badWebhook('certificate has too many parts')
    count++
    const contentStart = start + header.length
    if (upload.toString('latin1', start, contentStart) !== header) {
      throw badWebhook('certificate holds something that is not a certificate')
    }
    const contentEnd = upload.indexOf(footer, contentStart)
    if (contentEnd === -1) throw badWebhook('certificate is not in PEM format')
    pem += blockOf(upload, contentStart, contentEnd)
    if (pem.length > certificateBlocksBytesMax) throw badWebhook('certificate is too large')
    start = upload.indexOf(anyHeader, contentEnd + footer.length)
  }
  if (count === 0) throw badWebhook('certificate is not in PEM format')
  return pem
}

/**
 * Parses the certificates that `readCertificates` returned.
 *
 * @throws BAD_WEBHOOK if one of them is not a certificate.
 */
export function checkCertificates(pem: string): void {
  for (const block of pem.split(/(?<=-----END CERTIFICATE-----)\n/)) {
    if (block !== '') checkCertificate(block)
  }
}

/**
 * One certificate may have this many bytes of PEM: one with a hundred names has 10 KiB. A certificate that is built to be
 * slow (400 parts of a name) takes 1 ms to parse; the time grows with the square of the size: 4 ms for 62 KiB, 132 ms for
 * 171 KiB.
 */
export const certificateBlockBytesMax = 16 * kib

function blockOf(upload: Buffer, contentStart: number, contentEnd: number): string {
  if (contentEnd - contentStart > certificateBlockBytesMax) {
    throw badWebhook('certificate is too large')
  }
  const content = upload.toString('latin1', contentStart, contentEnd)
  if (!/^[A-Za-z0-9+/=\s]*$/.test(content)) throw badWebhook('certificate cannot be parsed')
  const base64 = Buffer.from(content, 'base64').toString('base64')
  const lines: string[] = []
  for (let at = 0; at < base64.length; at += lineLength)
    lines.push(base64.slice(at, at + lineLength))
  return `${[header, ...lines, footer].join('\n')}\n`
}

function checkCertificate(block: string): void {
  let parsed: string
  try {
    parsed = new X509Certificate(block).toString().trim()
  } catch (error) {
    throw badWebhook('certificate cannot be parsed', error)
  }
  // Bytes after the certificate would not be part of what is trusted.
  if (parsed !== block) throw badWebhook('certificate cannot be parsed')
}
