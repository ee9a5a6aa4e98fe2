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
  /** `{"update_id":N,"<type>":{...}}`, one slice, made when it is asked for where it was read from disk. */
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

/** Who has read updates in hand: while it has one, nobody else takes that one out because of its expiry. */
export interface UpdateHolder {
  /** Gives up through `bury` what it has and what has expired, all but what is in flight. */
  giveUpExpired(): void
  /** The queue, empty at the moment, gives lower ids from now on. */
  renumbered(): void
  /** Whether it has this update in hand, in constant time. */
  holds(update: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean
}

export interface DeliverySource {
  /** From now on `holder` reads here, or (undefined) nobody does. One at a time. */
  heldBy(holder: UpdateHolder | undefined): void
  /**
   * Up to `limit` pending updates with ids above `afterId`, in id order. A promise only where they must be
   * read from disk. Empty when there is nothing above `afterId` now.
   */
  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly PendingUpdate[] | Promise<readonly PendingUpdate[]>
  /** Removes delivered updates, each once; the deletion is durable soon after, and is not waited for. */
  remove(updates: readonly PendingUpdate[]): void
  /** Removes updates that are given up, each once. */
  bury(lost: readonly LostUpdate[]): void
}
