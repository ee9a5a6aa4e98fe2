/** The messages between a case and the helper `http-load`. */

export interface HttpQuestion {
  readonly connections: readonly HttpConnection[]
  readonly durationMs: number
}

/** One keep-alive connection with one request in flight, sent in turn. */
export interface HttpConnection {
  readonly port: number
  readonly requests: readonly string[]
  /** What an answer's body must have at least and at most, or else the run fails. */
  readonly bodyBytesMin: number
  readonly bodyBytesMax: number
}

export interface HttpSample {
  readonly operations: number
  readonly seconds: number
}
