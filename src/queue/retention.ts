/** How long updates that have left a queue are kept to be looked at. */
export interface Retention {
  /** 0: nothing is kept. */
  readonly ms: number
  /** A queue keeps at most this many bytes of texts; past that the oldest are deleted. */
  readonly bytes: number
}

export const noRetention: Retention = { ms: 0, bytes: 0 }
