import { retentionBytesMax, retentionMsMax } from '../../kit/limits.ts'

/** How long updates that have left a queue are kept to be looked at. */
export interface Retention {
  /** 0: nothing is kept. */
  readonly ms: number
  /** A queue keeps at most this many bytes of texts; past that the oldest are deleted. */
  readonly bytes: number
}

/** What the operator has set for one queue. Absent fields follow the server's options. */
export type OwnRetention = Partial<Retention>

export const noRetention: Retention = { ms: 0, bytes: 0 }
/** That of a queue whose own one cannot be read any more, so that nothing is deleted too early. The server's bound holds. */
export const longestRetention: Retention = { ms: retentionMsMax, bytes: retentionBytesMax }

/**
 * Returns how much a queue keeps.
 *
 * @param settings - those of the queue
 * @param usual - as the server's options say
 */
export function retentionOf(
  { retention: own }: { readonly retention?: OwnRetention },
  usual: Retention = noRetention,
): Retention {
  return own === undefined ? usual : { ...usual, ...own }
}
