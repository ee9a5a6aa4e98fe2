/**
 * What went wrong between us and an endpoint, in our words. They are shown to the bot's owner as
 * last_error_message and as the reason in setWebhook's refusal, so errors of Node, OpenSSL and undici are
 * put into them here, once; nothing further in looks at their codes.
 */

import { webhookErrorLengthMax } from '../limits.ts'

/** A failure whose message is already in our words. */
export class WebhookFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(message.slice(0, webhookErrorLengthMax), { cause })
    this.name = 'WebhookFailure'
  }
}

const texts: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'Connection refused'],
  ['ECONNRESET', 'Connection reset by peer'],
  ['EPIPE', 'Connection reset by peer'],
  ['ETIMEDOUT', 'Connection timed out'],
  ['EHOSTUNREACH', 'No route to host'],
  ['ENETUNREACH', 'Network is unreachable'],
  ['EADDRNOTAVAIL', 'Network is unreachable'],
  ['EMFILE', 'Too many open files on this server'],
  ['UND_ERR_CONNECT_TIMEOUT', 'Connection timed out'],
  ['UND_ERR_HEADERS_TIMEOUT', 'Connection timed out'],
  ['UND_ERR_BODY_TIMEOUT', 'Connection timed out'],
  ['UND_ERR_SOCKET', 'Webhook connection closed'],
  ['UND_ERR_HEADERS_OVERFLOW', 'Wrong response from the webhook: headers are too large'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'Webhook connection closed'],
  ['CERT_HAS_EXPIRED', 'TLS: certificate has expired'],
  ['CERT_NOT_YET_VALID', 'TLS: certificate is not yet valid'],
  ['CERT_REVOKED', 'TLS: certificate is revoked'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'TLS: certificate is self-signed'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'TLS: certificate chain ends in a self-signed certificate'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'TLS: certificate cannot be verified'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'TLS: certificate cannot be verified'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'TLS: certificate cannot be verified'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'TLS: certificate is for another host name'],
  ['ENOTFOUND', 'Failed to resolve host: Name or service not known'],
  ['EAI_AGAIN', 'Failed to resolve host: Temporary failure in name resolution'],
])

export function describeFailure(error: unknown): string {
  if (error instanceof WebhookFailure) return error.message
  const code = codeOf(error)
  const text = texts.get(code)
  if (text !== undefined) return text
  // undici loses the parser's code on some of these.
  if (code.startsWith('HPE_') || (error instanceof Error && error.name === 'HTTPParserError')) {
    return 'Wrong response from the webhook: not HTTP/1.1'
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS')) {
    return 'TLS: handshake failed'
  }
  return code === '' ? 'Connection failed' : `Connection failed: ${code}`
}

/** The failure of a look-up, whatever its code. */
export function describeLookupFailure(error: unknown): string {
  if (error instanceof WebhookFailure) return error.message
  const code = codeOf(error)
  return texts.get(code)?.startsWith('Failed to resolve')
    ? describeFailure(error)
    : `Failed to resolve host: ${code === '' ? 'unknown error' : code}`
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return typeof error.code === 'string' ? error.code : ''
}
