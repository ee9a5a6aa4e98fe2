/**
 * The errors of the client. Each has a code of the server (docs/reference/errors.md) or one of the client's codes below.
 *
 * An error tells a producer two facts: whether the same push may succeed later (`isRetryable`), and
 * whether the update may have been stored although the push failed (`isOutcomeUnknown`). No
 * message contains the key.
 */
import { type ErrorCode, errorKinds } from '../../src/kit/errors.ts'

interface ClientErrorKind {
  readonly message: string
  readonly isRetryable: boolean
  readonly isOutcomeUnknown: boolean
}

/** The codes that only the client uses, with their messages and the defaults of what the error says. */
export const clientErrorKinds = {
  CONNECTION_FAILED: {
    message: 'The client could not connect to the server, and nothing was sent',
    isRetryable: true,
    isOutcomeUnknown: false,
  },
  CONNECTION_LOST: {
    message: 'The connection broke before the response was complete',
    isRetryable: true,
    isOutcomeUnknown: true,
  },
  TIMEOUT: {
    message: 'The response did not arrive within timeoutMs',
    isRetryable: true,
    isOutcomeUnknown: true,
  },
  ABORTED: {
    message: 'The signal was aborted before the response arrived',
    isRetryable: false,
    isOutcomeUnknown: true,
  },
  UNEXPECTED_ANSWER: {
    message: 'Expected a response of Postbote: another server may use this address',
    isRetryable: false,
    isOutcomeUnknown: true,
  },
  TOO_MANY_UNDER_WAY: {
    message: 'Too many pushes are under way, and nothing was sent: await ready() before each push',
    isRetryable: false,
    isOutcomeUnknown: false,
  },
  CLOSED: {
    message: 'The client or the stream was closed before anything was sent',
    isRetryable: false,
    isOutcomeUnknown: false,
  },
} as const satisfies Record<string, ClientErrorKind>

/** A code that the client itself assigns. */
export type ClientErrorCode = keyof typeof clientErrorKinds
/** A code of the server or of the client. */
export type PostboteClientErrorCode = ErrorCode | ClientErrorCode

/** Codes with a status of 5xx that guarantee that nothing was stored. */
export const nothingStored: ReadonlySet<string> = new Set<ErrorCode>([
  'KEYS_UNAVAILABLE',
  'STORE_UNAVAILABLE',
  'SHARD_BROKEN',
  'TOO_MANY_CONNECTIONS',
  'TOO_MANY_BODIES',
  'QUEUE_FULL',
  'DISK_LOW',
  'ID_SPACE_EXHAUSTED',
])

/** Optional parts of a PostboteClientError. */
export interface ClientErrorDetails {
  readonly message?: string | undefined
  readonly status?: number | undefined
  readonly retryAfterS?: number | undefined
  /** Overrides what the code implies, for a caller that knows more. */
  readonly isOutcomeUnknown?: boolean | undefined
  readonly cause?: unknown
}

/** What calls and pushes reject with. */
export class PostboteClientError extends Error {
  /** A code of docs/reference/errors.md, or one of the client (docs/use/client.md). */
  readonly code: PostboteClientErrorCode
  /**
   * HTTP status of the response, or the status that belongs to the code. Undefined if the code is the client's and
   * there was no response.
   */
  readonly status: number | undefined
  /** The server's Retry-After, in seconds. */
  readonly retryAfterS: number | undefined
  /** Whether the update may have been stored all the same. A push with the same idempotency key stores it only once. */
  readonly isOutcomeUnknown: boolean

  /**
   * Creates an error.
   *
   * @param code - The code, which decides the properties that `details` leaves out.
   * @param details - Message, status and cause, if they differ from the code's defaults.
   */
  constructor(code: PostboteClientErrorCode, details: ClientErrorDetails = {}) {
    const { message, status, retryAfterS, cause } = details
    super(message ?? defaultMessageOf(code), cause === undefined ? undefined : { cause })
    this.name = 'PostboteClientError'
    this.code = code
    this.status = status ?? (isServerCode(code) ? errorKinds[code].status : undefined)
    this.retryAfterS = retryAfterS
    this.isOutcomeUnknown = details.isOutcomeUnknown ?? leavesOutcomeUnknown(code, this.status)
  }

  /** Whether the same push may succeed later. The client itself has stopped retrying by then. */
  get isRetryable(): boolean {
    const { code, status = 0 } = this
    if (!isServerCode(code) && clientErrorKinds[code].isRetryable) return true
    return status === 429 || (status >= 500 && status !== 507)
  }
}

/** Returns the error of a push of which an earlier attempt may have stored the update. */
export function withUnknownOutcome(error: PostboteClientError): PostboteClientError {
  return error.isOutcomeUnknown ? error : changed(error, { isOutcomeUnknown: true })
}

/** Returns an error without the key, which the text of a faulty server may repeat. */
export function withoutKey(error: PostboteClientError, key: string): PostboteClientError {
  const { message } = error
  return message.includes(key)
    ? changed(error, { message: message.replaceAll(key, '(the key)') })
    : error
}

function changed(error: PostboteClientError, details: ClientErrorDetails): PostboteClientError {
  const { code, message, status, retryAfterS, isOutcomeUnknown, cause } = error
  const kept = { message, status, retryAfterS, isOutcomeUnknown, cause }
  return new PostboteClientError(code, { ...kept, ...details })
}

/**
 * Returns the error of a call that its signal or `close` ended.
 *
 * @param code - ABORTED for the signal, CLOSED for `close`.
 * @param details - Whether an attempt may have been carried out (default: nothing was sent), and the signal's reason.
 */
export function callGivenUp(
  code: 'ABORTED' | 'CLOSED',
  { isOutcomeUnknown = false, cause }: Pick<ClientErrorDetails, 'isOutcomeUnknown' | 'cause'> = {},
): PostboteClientError {
  const what = code === 'ABORTED' ? 'The signal was aborted' : 'The client or the stream was closed'
  const message = `${what} before ${isOutcomeUnknown ? 'the response arrived' : 'anything was sent'}`
  return new PostboteClientError(code, { message, isOutcomeUnknown, cause })
}

function leavesOutcomeUnknown(code: PostboteClientErrorCode, status = 0): boolean {
  if (isServerCode(code)) return status >= 500 && !nothingStored.has(code)
  return clientErrorKinds[code].isOutcomeUnknown && (status < 400 || status >= 500)
}

/** Whether a code is one of the server's (docs/reference/errors.md). */
export function isServerCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorKinds, code)
}

function defaultMessageOf(code: PostboteClientErrorCode): string {
  return isServerCode(code) ? errorKinds[code].description : clientErrorKinds[code].message
}
