/**
 * The JSON that is stored of the last attempts of a webhook (`a` record). It is replaced as a whole, so that it never has more
 * than the attempts that are kept, and many of these have the same texts.
 */
export interface AttemptsRecord {
  /** The addresses, errors, bodies and headers of responses, each of them once. */
  readonly texts: readonly string[]
  /** The oldest attempt first. */
  readonly rows: readonly AttemptRow[]
}

/** One attempt. The order is stored: append only, do not reorder. All times are wall time in milliseconds. */
export type AttemptRow = readonly [
  atMs: number,
  /** 0 for a connection whose update was taken over by another connection. */
  updateId: number,
  /** The HTTP status; 0 without a response. */
  status: number,
  durationMs: number,
  /** 0 without a retry. */
  nextRetryMs: number,
  /** 1 for an update that was refused for good, otherwise 0. */
  refused: number,
  /** The places in `texts`; -1 without. */
  address: number,
  error: number,
  responseBody: number,
  /** Absent without. */
  responseHeaders?: number,
  traceparent?: number,
]
