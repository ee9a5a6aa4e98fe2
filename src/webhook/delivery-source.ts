/**
 * What a webhook's dispatcher needs of its bot's queue. Implemented by the queue (`queue/update-queue.ts`),
 * and by a plain array in the dispatcher's tests.
 */

/** One pending update. */
export interface PendingUpdate {
  readonly updateId: number
  /** Updates with one key go out strictly in order; a different key may overtake. */
  readonly orderingKey: string
  /** Wall time in seconds. Never sent at or after it. */
  readonly expiresAtS: number
  /** Length of the stored text: what holding the update costs. */
  readonly textBytes: number
  /** `{"update_id":N,"<type>":{...}}`, one slice; valid until the update is removed. */
  body(): Buffer
}

/** Why an update is not delivered any more. */
export type LostReason = 'expired' | 'refused'

/** An update that leaves the queue without having been delivered. */
export interface LostUpdate {
  readonly update: PendingUpdate
  readonly reason: LostReason
  /** How often it was sent, or a connection was opened for it; 0 where it only waited behind others. */
  readonly attempts: number
  /** What the last of them ended with. */
  readonly lastError: string | undefined
}

export interface DeliverySource {
  /**
   * Up to `limit` pending updates with ids above `afterId`, in id order. A promise only where they must be
   * read from disk. Empty when there is nothing above `afterId` now.
   */
  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly PendingUpdate[] | Promise<readonly PendingUpdate[]>
  /** Removes delivered updates; the deletion is durable soon after, and is not waited for. */
  remove(updates: readonly PendingUpdate[]): void
  /** Removes updates that are given up. */
  bury(lost: readonly LostUpdate[]): void
}
