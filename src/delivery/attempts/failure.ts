/**
 * Describes failures between this server and an endpoint in our own words. Bot owners see them as last_error_message and
 * as the reason of a refused setWebhook. Errors of Node, OpenSSL and undici are translated here once; no other file reads
 * their codes.
 */
import { webhookErrorLengthMax } from '../../kit/limits.ts'

/**
 * How failed attempts are counted.
 *
 *     connection_failed   no address, no connection, or a broken connection
 *     tls_failed          connected, but the handshake or the certificate failed
 *     timed_out           a timeout at any stage
 *     rejected            a response arrived, but not a success
 */
export type FailureKind = 'connection_failed' | 'tls_failed' | 'timed_out' | 'rejected'

/** A failure whose message is already in our own words, at most 256 characters long. */
export class WebhookFailure extends Error {
  readonly kind: FailureKind

  constructor(message: string, kind: FailureKind = 'connection_failed', cause?: unknown) {
    super(shortened(message), { cause })
    this.name = 'WebhookFailure'
    this.kind = kind
  }
}

/** The message if no name server answers. setWebhook uses it, too, when its own deadline ends the look-up. */
export const noNameServerAnswer = 'Failed to resolve host: Temporary failure in name resolution'

/** The message if an endpoint was connected to and did not respond in time. It begins as that of Telegram. */
export const noResponse = 'Read timeout expired: connected, but no complete response in time'

const noIssuer =
  'TLS: certificate cannot be verified: unknown issuer, or an intermediate certificate is missing'
const certificatesTooDear =
  'TLS: certificates are too many, too long, or have a key that is not accepted (RSA up to 8192 bits, P-256, P-384, P-521, Ed25519 and Ed448 are)'

const textsByKind: Readonly<Record<FailureKind, Readonly<Record<string, string>>>> = {
  connection_failed: {
    ECONNREFUSED: 'Connection refused',
    ECONNRESET: 'Connection reset by peer',
    EPIPE: 'Connection reset by peer',
    EHOSTUNREACH: 'No route to host',
    ENETUNREACH: 'Network is unreachable',
    EADDRNOTAVAIL: 'Network is unreachable',
    EMFILE: 'Too many open files on this server',
    ENFILE: 'Too many open files on this server',
    UND_ERR_SOCKET: 'Webhook connection closed',
    ENOTFOUND: 'Failed to resolve host: Name or service not known',
    EAI_AGAIN: noNameServerAnswer,
  },
  timed_out: {
    ETIMEDOUT: 'Connection timed out',
    UND_ERR_CONNECT_TIMEOUT: 'Connection timed out',
    UND_ERR_HEADERS_TIMEOUT: noResponse,
    UND_ERR_BODY_TIMEOUT: noResponse,
  },
  rejected: {
    UND_ERR_RES_CONTENT_LENGTH_MISMATCH:
      'Wrong response from the webhook: its body does not have the length that its headers say',
    UND_ERR_HEADERS_OVERFLOW: 'Wrong response from the webhook: headers are too large',
  },
  tls_failed: {
    CERT_HAS_EXPIRED: 'TLS: certificate has expired',
    CERT_NOT_YET_VALID: 'TLS: certificate is not yet valid',
    CERT_REVOKED: 'TLS: certificate is revoked',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'TLS: certificate is self-signed',
    SELF_SIGNED_CERT_IN_CHAIN: 'TLS: certificate chain ends in a self-signed certificate',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: noIssuer,
    UNABLE_TO_GET_ISSUER_CERT: noIssuer,
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: noIssuer,
    INVALID_PURPOSE: 'TLS: certificate is not for servers',
    ERR_TLS_CERT_ALTNAME_INVALID: 'TLS: certificate is for another host name',
    ERR_SSL_WRONG_VERSION_NUMBER: 'TLS: handshake failed: this port does not speak TLS',
    ERR_SSL_PACKET_LENGTH_TOO_LONG: 'TLS: handshake failed: this port does not speak TLS',
    ERR_SSL_UNSUPPORTED_PROTOCOL: 'TLS: handshake failed: no common protocol version',
    ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'TLS: handshake failed: no common protocol version',
    // Only the limits of tls-context.ts end a handshake with these two codes.
    ERR_SSL_CERTIFICATE_VERIFY_FAILED: certificatesTooDear,
    ERR_SSL_EXCESSIVE_MESSAGE_SIZE: certificatesTooDear,
    // Up to TLS 1.2 one alert stands for both causes.
    ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE:
      'TLS: handshake failed: no common cipher, or a client certificate is required',
    ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
      'TLS: handshake failed: the endpoint speaks HTTP/2 only, and deliveries need HTTP/1.1',
    ERR_SSL_TLSV1_UNRECOGNIZED_NAME: 'TLS: handshake failed: host name is unknown there',
    ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      'TLS: handshake failed: a client certificate is required',
  },
}

/** What is wrong with a certificate, as far as the owner of the endpoint can tell and mend it. */
export type CertificateFault = 'expired' | 'untrusted' | 'other_host'

const faultsByCode: ReadonlyMap<string, CertificateFault> = new Map([
  ['CERT_HAS_EXPIRED', 'expired'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'untrusted'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'untrusted'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'untrusted'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'other_host'],
])

/** Returns what is wrong with the certificate if that is why a connection has failed. */
export function certificateFaultOf(failure: WebhookFailure): CertificateFault | undefined {
  return faultsByCode.get(codeOf(failure.cause))
}

interface Words {
  readonly kind: FailureKind
  readonly text: string
}

const wordsByCode: ReadonlyMap<string, Words> = new Map(
  (['connection_failed', 'timed_out', 'rejected', 'tls_failed'] as const).flatMap((kind) =>
    Object.entries(textsByKind[kind]).map(([code, text]) => [code, { kind, text }] as const),
  ),
)

/**
 * Translates any error of a connection or a delivery.
 *
 * @returns the error itself if it is a WebhookFailure
 */
export function failureOf(error: unknown): WebhookFailure {
  if (error instanceof WebhookFailure) return error
  const code = codeOf(error)
  const { kind, text } = upgrade(error) ?? wordsByCode.get(code) ?? wordsForUnknown(code, error)
  return new WebhookFailure(text, kind, error)
}

const wrongResponse = /^Wrong response from the webhook: /

/** Returns what is wrong with the response of any server; undefined if none has come. */
export function answerFaultOf(error: unknown): string | undefined {
  const { kind, message } = failureOf(error)
  return kind === 'rejected' ? withoutPrefix(message) : undefined
}

/** Returns the message of a failure without what all wrong responses have before it. */
export function withoutPrefix(message: string): string {
  return message.replace(wrongResponse, '')
}

/**
 * Returns a failure as the cause of what its reader sees, such as `endpoint answers 502 Bad Gateway`.
 *
 * @param message - of a WebhookFailure, or of a response that is not a success
 * @param verb - whether it does so still
 */
export function causeOfFailure(message: string, verb: 'answers' | 'answered'): string {
  if (!wrongResponse.test(message)) return message
  const what = withoutPrefix(message)
  return `endpoint ${verb} ${/^\d{3}\b/.test(what) ? '' : 'wrongly: '}${what}`
}

/** Translates an error during a TLS handshake. A broken connection counts as `tls_failed` then. */
export function tlsFailureOf(error: unknown): WebhookFailure {
  const failure = failureOf(error)
  if (failure.kind !== 'connection_failed') return failure
  const what = withoutGeneral(failure.message)
  return new WebhookFailure(`TLS: handshake failed: ${what}`, 'tls_failed', error)
}

/**
 * Translates an error on the way to the proxy or at the proxy, so that it is not mistaken for the endpoint's. The message
 * begins with `Proxy:`.
 */
export function proxyFailureOf(error: unknown): WebhookFailure {
  const { kind, message } = failureOf(error)
  return new WebhookFailure(`Proxy: ${withoutGeneral(message)}`, kind, error)
}

function withoutGeneral(message: string): string {
  return message.replace(/^Connection failed: /, '')
}

/** Cuts a text to 256 characters, because texts from the other side may be of any length. */
function shortened(message: string): string {
  return message.slice(0, webhookErrorLengthMax)
}

/** Translates the failure of a look-up. For any code the message begins with `Failed to resolve host:`. */
export function lookupFailureOf(error: unknown): WebhookFailure {
  const failure = failureOf(error)
  if (failure === error || failure.message.startsWith('Failed to resolve host')) return failure
  const code = codeOf(error)
  const text = `Failed to resolve host: ${code === '' ? 'unknown error' : code}`
  return new WebhookFailure(text, 'connection_failed', error)
}

/** undici reports this case as a broken connection; only its message tells it apart. */
function upgrade(error: unknown): Words | undefined {
  if (!(error instanceof Error) || error.message !== 'bad upgrade') return undefined
  return {
    kind: 'rejected',
    text: 'Wrong response from the webhook: 101 Switching Protocols was not requested',
  }
}

function wordsForUnknown(code: string, error: unknown): Words {
  if (isParserError(code, error)) {
    return { kind: 'rejected', text: 'Wrong response from the webhook: not HTTP/1.1' }
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS')) {
    return { kind: 'tls_failed', text: 'TLS: handshake failed' }
  }
  const text = code === '' ? 'Connection failed' : `Connection failed: ${code}`
  return { kind: 'connection_failed', text }
}

/** undici drops the parser's code on some errors and detects others, like a status of 000, only by its assertions. */
function isParserError(code: string, error: unknown): boolean {
  if (code.startsWith('HPE_') || code === 'ERR_ASSERTION') return true
  return error instanceof Error && error.name === 'HTTPParserError'
}

/** Returns the code of an error of Node or undici; empty without one. */
export function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return typeof error.code === 'string' ? error.code : ''
}
