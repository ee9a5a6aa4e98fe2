/**
 * Every way in which a call can fail: a code of the server (docs/errors.md), or one of the client's own below.
 *
 * What matters to a producer is told apart here, once: whether the same push may succeed later (`isRetryable`), and
 * whether it may have been stored although it failed (`isOutcomeUnknown`). The admin key is in no text.
 */
import { type ErrorCode, errorKinds } from '../errors.ts'

interface ClientErrorKind {
  readonly message: string
  readonly isRetryable: boolean
  readonly isOutcomeUnknown: boolean
}

export const clientErrorKinds = {
  CONNECTION_FAILED: {
    message: 'No connection to the server could be made, nothing was sent',
    isRetryable: true,
    isOutcomeUnknown: false,
  },
  CONNECTION_LOST: {
    message: 'The connection broke before the answer was complete',
    isRetryable: true,
    isOutcomeUnknown: true,
  },
  TIMEOUT: {
    message: 'No answer within timeoutMs',
    isRetryable: true,
    isOutcomeUnknown: true,
  },
  ABORTED: {
    message: 'The signal was aborted before the answer had come',
    isRetryable: false,
    isOutcomeUnknown: true,
  },
  UNEXPECTED_ANSWER: {
    message: 'Expected an answer of Postbote, is something else at this address?',
    isRetryable: false,
    isOutcomeUnknown: true,
  },
  TOO_MANY_UNDER_WAY: {
    message: 'Too many pushes are under way, nothing was sent: await ready() before each push',
    isRetryable: false,
    isOutcomeUnknown: false,
  },
  CLOSED: {
    message: 'The client or the stream was closed before anything was sent',
    isRetryable: false,
    isOutcomeUnknown: false,
  },
} as const satisfies Record<string, ClientErrorKind>

export type ClientErrorCode = keyof typeof clientErrorKinds
export type PostboteClientErrorCode = ErrorCode | ClientErrorCode

/** Refusals with a status of 5xx that say for sure that nothing was stored. */
const nothingStored: ReadonlySet<string> = new Set<ErrorCode>([
  'STORE_UNAVAILABLE',
  'SHARD_BROKEN',
  'TOO_MANY_CONNECTIONS',
  'TOO_MANY_BODIES',
  'QUEUE_FULL',
  'DISK_LOW',
  'ID_SPACE_EXHAUSTED',
])

export interface ClientErrorDetails {
  readonly message?: string | undefined
  readonly status?: number | undefined
  readonly retryAfterS?: number | undefined
  /** Where more is known than the code says. */
  readonly isOutcomeUnknown?: boolean | undefined
  readonly cause?: unknown
}

export class PostboteClientError extends Error {
  readonly code: PostboteClientErrorCode
  /** Of the answer, or the one that goes with the code; undefined where the code is the client's own and nothing was answered. */
  readonly status: number | undefined
  /** The server's Retry-After. */
  readonly retryAfterS: number | undefined
  /** The update may have been stored all the same. Pushed again with the same idempotency key it is stored once. */
  readonly isOutcomeUnknown: boolean

  constructor(code: PostboteClientErrorCode, details: ClientErrorDetails = {}) {
    const { message, status, retryAfterS, cause } = details
    super(message ?? defaultMessageOf(code), cause === undefined ? undefined : { cause })
    this.name = 'PostboteClientError'
    this.code = code
    this.status = status ?? (isServerCode(code) ? errorKinds[code].status : undefined)
    this.retryAfterS = retryAfterS
    this.isOutcomeUnknown = details.isOutcomeUnknown ?? leavesOutcomeUnknown(code, this.status)
  }

  /** The same push may succeed later. The client has tried again already, as often as its options say. */
  get isRetryable(): boolean {
    const { code, status = 0 } = this
    if (!isServerCode(code) && clientErrorKinds[code].isRetryable) return true
    return status === 429 || (status >= 500 && status !== 507)
  }
}

/** The same error, of a push of which an earlier attempt may have been stored. */
export function withUnknownOutcome(error: PostboteClientError): PostboteClientError {
  if (error.isOutcomeUnknown) return error
  const { code, message, status, retryAfterS, cause } = error
  const details = { message, status, retryAfterS, isOutcomeUnknown: true, cause }
  return new PostboteClientError(code, details)
}

/** A call that is not wanted any more. */
export function callGivenUp(
  code: 'ABORTED' | 'CLOSED',
  { isOutcomeUnknown = false, cause }: Pick<ClientErrorDetails, 'isOutcomeUnknown' | 'cause'> = {},
): PostboteClientError {
  const what = code === 'ABORTED' ? 'The signal was aborted' : 'The client or the stream was closed'
  const message = `${what} before ${isOutcomeUnknown ? 'the answer had come' : 'anything was sent'}`
  return new PostboteClientError(code, { message, isOutcomeUnknown, cause })
}

function leavesOutcomeUnknown(code: PostboteClientErrorCode, status = 0): boolean {
  if (isServerCode(code)) return status >= 500 && !nothingStored.has(code)
  return clientErrorKinds[code].isOutcomeUnknown && (status < 400 || status >= 500)
}

export function isServerCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorKinds, code)
}

function defaultMessageOf(code: PostboteClientErrorCode): string {
  return isServerCode(code) ? errorKinds[code].description : clientErrorKinds[code].message
}
