/** An update that leaves its queue: what is stored of it if it is kept, and how long it is kept. */
import { webhookErrorLengthMax, retentionBytesMax, retentionMsMax } from '../../kit/limits.ts'
import type { LeaveReason } from '../../shard/records/record.ts'
import type { StoredLeftUpdate } from '../../shard/records/stored-records.ts'
import type { QueuedUpdate } from '../queued-update.ts'

/** How an update left its queue. */
export interface Leaving<Reason extends LeaveReason> {
  readonly reason: Reason
  readonly leftAtMs: number
  readonly attempts?: number
  readonly lastError?: string | undefined
}

export function leftUpdateOf<Reason extends LeaveReason>(
  update: QueuedUpdate,
  { reason, leftAtMs, attempts = 0, lastError = '' }: Leaving<Reason>,
): StoredLeftUpdate & { readonly reason: Reason } {
  const { updateId, typeNumber, acceptedAtS, orderingKey, textBytes, traceparent } = update
  // The body is `{"update_id":N,<text>}`.
  const text = update.body().subarray(-1 - textBytes, -1)
  return {
    updateId,
    typeNumber,
    reason,
    leftAtMs,
    acceptedAtS,
    attempts,
    lastError: lastError.slice(0, webhookErrorLengthMax),
    orderingKey,
    ...(traceparent === undefined ? {} : { traceparent }),
    text,
  }
}

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
