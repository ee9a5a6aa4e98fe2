/** An update that leaves its queue, with the fields that are stored if it is kept. */
import { webhookErrorLengthMax } from '../../kit/limits.ts'
import type { LeaveReason } from '../../shard/records/record.ts'
import type { StoredLeftUpdate } from '../../shard/records/stored.ts'
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
