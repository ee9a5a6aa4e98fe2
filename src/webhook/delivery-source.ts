/**
 * What a webhook's dispatcher needs of its bot's queue. Implemented by the queue (`queue/update-queue.ts`),
 * and by a plain array in the dispatcher's tests.
 */

/** One pending update. Identity (===) is stable for as long as the update stays loaded. */
export interface PendingUpdate {
  readonly updateId: number
  /** Updates with one key go out strictly in order; a different key may overtake. */
  readonly orderingKey: string
  /** Wall time in seconds. Never sent at or after it. */
  readonly expiresAtS: number
  /** `{"update_id":N,"<type>":{...}}`, one slice; valid until the update is removed. */
  body(): Buffer
}

/** Why an update left the queue without having been confirmed by the bot. */
export type RemovalReason = 'delivered' | 'expired'

export interface DeliverySource {
  /**
   * Up to `limit` pending updates with ids above `afterId`, in id order. A promise only where they must be
   * read from disk. Empty when there is nothing above `afterId` now.
   */
  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly PendingUpdate[] | Promise<readonly PendingUpdate[]>
  /** Removes updates from the queue; the deletion is durable soon after, and is not waited for. */
  remove(updateIds: readonly number[], reason: RemovalReason): void
}
