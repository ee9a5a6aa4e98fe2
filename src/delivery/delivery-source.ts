/**
 * What a webhook's dispatcher needs from its bot's queue. The queue (`queue/update-queue.ts`) implements it, and so does
 * a plain array in the dispatcher's tests.
 */

/** One pending update. */
export interface PendingUpdate {
  readonly updateId: number
  /** Updates with the same key are delivered strictly in order; updates with different keys may overtake each other. */
  readonly orderingKey: string
  /** Wall time in seconds. The update is never sent at or after it. */
  readonly expiresAtS: number
  /** The length of the stored text in bytes, which is the cost of holding the update. */
  readonly textBytes: number
  /** The place of its producer in a trace; absent if it has none. */
  readonly traceparent?: string | undefined
  /** Returns `{"update_id":N,"<type>":{...}}` as one slice. For an update read from disk it is created on each call. */
  body(): Buffer
}

/** Why an update is no longer delivered. */
export type LostReason = 'expired' | 'refused'

/** An update that leaves the queue without having been delivered. */
export interface LostUpdate {
  readonly update: PendingUpdate
  readonly reason: LostReason
  /** How often it was sent or a connection was opened for it; 0 if it only waited after others. */
  readonly attempts: number
  /** The error of the last attempt. */
  readonly lastError: string | undefined
}

/** A dispatcher that holds updates it has read. Nothing else removes a held update that it was not asked to release. */
export interface UpdateHolder {
  /** Gives up through `addDeadLetters` all held updates that have expired, except those in flight. */
  giveUpExpired(): void
  /** The queue, empty at the moment, assigns lower ids from now on. */
  renumbered(): void
  /**
   * Lets go of an update, so that it can be removed from the queue.
   *
   * @returns false if the update is being delivered, or was delivered
   */
  release(update: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean
  /**
   * Lets go of an update that leaves the queue in any case. If it is being delivered, it is not sent again.
   *
   * @returns false as long as it is being delivered, or was delivered and is about to be removed
   */
  abandon(update: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean
  /** Tells whether it holds this update, in constant time. */
  holds(update: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean
}

export interface DeliverySource {
  /** Sets the dispatcher that reads here from now on; undefined for none. There is at most one at a time. */
  heldBy(holder: UpdateHolder | undefined): void
  /**
   * Returns up to `limit` pending updates with ids above `afterId`, in id order. The list is empty if there are none at
   * the moment. Returns a promise only if updates must be read from disk.
   */
  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly PendingUpdate[] | Promise<readonly PendingUpdate[]>
  /**
   * Removes delivered updates, each once. The removal becomes durable soon after and is not awaited.
   *
   * @param attempts - how often each was sent, if that is known
   */
  remove(updates: readonly PendingUpdate[], attempts?: readonly number[]): void
  /** Removes updates that were given up, each once. */
  addDeadLetters(lost: readonly LostUpdate[]): void
}
