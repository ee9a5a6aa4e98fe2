/** The messages between a case and the helper `http-load`. */

export interface HttpQuestion {
  readonly connections: readonly HttpConnection[]
  readonly durationMs: number
}

/** One keep-alive connection with one request in flight, sent in turn. */
export interface HttpConnection {
  readonly port: number
  /** In each the `numberMark` is replaced by a number that never comes again. */
  readonly requests: readonly string[]
  /** What an answer's body must have at least and at most, or else the run fails. */
  readonly bodyBytesMin: number
  readonly bodyBytesMax: number
  /** A connection for each request. The server is to close it. */
  readonly isOneShot?: boolean
  /** So long after each answer the next request; its delays are noted, and it counts as no operation. */
  readonly probeEveryMs?: number
}

export interface HttpSample {
  readonly operations: number
  readonly seconds: number
  /** Of the probes, sorted. */
  readonly delaysMs: readonly number[]
}

export const numberMark = '#'.repeat(16)
