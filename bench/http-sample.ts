/** The messages between a case and the helper `http-load`. */

export interface HttpQuestion {
  readonly connections: readonly HttpConnection[]
  readonly durationMs: number
}

/** One keep-alive connection with one request in flight; its requests are sent in turn. */
export interface HttpConnection {
  readonly port: number
  readonly isTls?: boolean
  /** In each, the `numberMark` is replaced by a number that is never used again. */
  readonly requests: readonly string[]
  /** The smallest and largest allowed body of a response; otherwise the run fails. */
  readonly bodyBytesMin: number
  readonly bodyBytesMax: number
  /** Each request has its own connection, which the server closes. */
  readonly isOneShot?: boolean
  /** The pause between a response and the next request. The delays are recorded, and the requests are not operations. */
  readonly probeEveryMs?: number
}

export interface HttpSample {
  readonly operations: number
  readonly seconds: number
  /** The delays of the probes, sorted. */
  readonly delaysMs: readonly number[]
}

export const numberMark = '#'.repeat(16)
