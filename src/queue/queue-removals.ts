/**
 * Takes single updates out of a queue, wherever they are: those that were delivered, that have expired, or that a webhook has
 * given up, which become dead letters. No removal is awaited. update-queue.ts removes the oldest updates (`confirm`, `drop`).
 */
import assert from 'node:assert/strict'
import { nextTurn } from '../kit/clock.ts'
import { PostboteError } from '../kit/errors.ts'
import type { QueueId } from '../shard/records/record-keys.ts'
import type { DeleteOperation, Operation } from '../shard/operations.ts'
import type { LeaveReason } from '../shard/records/record.ts'
import type { Shard } from '../shard/shard.ts'
import type { LostUpdate, PendingUpdate, UpdateHolder } from '../delivery/delivery-source.ts'
import type { Backlog } from './window/backlog.ts'
import { DeadLetters } from './kept/dead-letters.ts'
import type { Erasing } from './kept/erase-kept.ts'
import { type Leaving, leftUpdateOf, type Retention } from './kept/left-update.ts'
import { type LookPayer, pendingCostMs } from './kept/look-payer.ts'
import { isQueued, type QueuedUpdate } from './queued-update.ts'
import type { QueueReader, StoredQueue } from './queue-reader.ts'
import { observeLeft } from './kept/stored-runs.ts'
import type { RemovedEntries, WindowEntry } from './window/window.ts'
import type { Counters, Surroundings } from '../kit/surroundings.ts'

/** What a queue needs from its bot and its worker so that updates can leave it. */
export interface RemovalServices extends Pick<Surroundings, 'clock' | 'counters'> {
  readonly id: QueueId
  readonly shard: Shard
  /** Tells whether the queue has a webhook. If so, an update that expires counts as lost and becomes a dead letter. */
  isWebhookActive(): boolean
  /** How long updates that leave the queue are kept. */
  retention(): Retention
  /** Reports how many updates were lost because they expired. */
  lostByExpiry(count: number): void
  /** Reports how many updates a webhook took this long after they were stored. */
  deliveredAfter?(delayMs: number, count: number): void
  /** Reports how many updates became dead letters, and the error of the last one's last attempt. */
  deadLettersAdded(count: number, lastError: string | undefined): void
}

export interface QueueRemovalsOptions {
  readonly services: RemovalServices
  readonly stored: StoredQueue
  readonly backlog: Backlog
  reader(): QueueReader
  /** Something is about to be kept. */
  keeps(): void
  /** The dispatcher of an active webhook. */
  holder(): UpdateHolder | undefined
}

/**
 * One operation removes this many updates from a queue, in one turn of the event loop; further ones need further
 * operations.
 */
const removedPerOperationMax = 1_000

export class QueueRemovals {
  readonly #options: QueueRemovalsOptions
  readonly #services: RemovalServices
  readonly #stored: StoredQueue
  readonly #backlog: Backlog
  /** Created on first use: most queues never have dead letters. */
  #deadLetters: DeadLetters | undefined

  constructor(options: QueueRemovalsOptions) {
    this.#options = options
    this.#services = options.services
    this.#stored = options.stored
    this.#backlog = options.backlog
  }

  get deadLetters(): DeadLetters {
    this.#deadLetters ??= new DeadLetters(this.#stored, this.#services)
    return this.#deadLetters
  }

  /** Removes delivered updates. */
  remove(updates: readonly PendingUpdate[], attempts?: readonly number[]): void {
    const removed = this.#take(updates)
    const { clock, counters } = this.#services
    counters.add('updates_delivered', removed.count)
    const observe: Counters['observe'] = (name, delayMs, count = 1) => {
      counters.observe(name, delayMs, count)
      this.#services.deliveredAfter?.(delayMs, count)
    }
    observeLeft({ observe }, 'delivery_webhook', { ...removed, atMs: clock.nowMs() })
    void this.#commitRemoval(removed, {
      kept: this.#keptOf(updates, removed, { reason: 'delivered', attempts }),
    })
  }

  /** Removes updates that were given up and keeps them as dead letters. */
  addDeadLetters(lost: readonly LostUpdate[]): void {
    const removed = this.#take(lost.map(({ update }) => update))
    if (removed.count === 0) return
    const left = new Set(removed.updateIds)
    const dying = lost.flatMap(({ update, ...why }) =>
      left.has(update.updateId) && isQueued(update) ? [{ ...why, update }] : [],
    )
    const expired = dying.filter(({ reason }) => reason === 'expired')
    if (expired.length > 0) {
      this.#services.counters.add('updates_expired', expired.length)
      this.#services.counters.add('webhook_expired', expired.length)
      this.#services.lostByExpiry(expired.length)
    }
    this.#services.deadLettersAdded(dying.length, dying.at(-1)?.lastError)
    void this.#commitRemoval(removed, { alongside: this.deadLetters.addDeadLetters(dying) })
  }

  /**
   * Removes expired updates, loaded or not, except those the webhook's dispatcher holds. Scans the complete queue if it
   * is not loaded.
   *
   * @returns false if an expired update was left because the dispatcher holds it
   */
  async removeExpired(): Promise<boolean> {
    const nowS = this.#services.clock.nowMs() / 1000
    this.#options.holder()?.giveUpExpired()
    let isComplete = true
    const removable = (update: PendingUpdate): boolean => {
      const isHeld = this.#isHeld(update)
      if (isHeld) isComplete = false
      return !isHeld
    }
    await this.#inSlices(this.#expiredInWindow(nowS), (slice) =>
      this.#expire(slice.filter(removable)),
    )
    await this.#options.reader().eachUnloaded(async (updates) => {
      const expired = updates.filter((update) => update.expiresAtS <= nowS && removable(update))
      this.#expire(expired)
      if (expired.length > 0) await this.#stored.settled()
    })
    return isComplete
  }

  /**
   * Removes one pending update, wherever it is.
   *
   * @returns the update; undefined if none with this id is pending. The removal is durable then
   * @throws UPDATE_IN_DELIVERY if the webhook gets it at this moment, STORE_UNAVAILABLE, OUTCOME_UNKNOWN
   */
  async dropOne(updateId: number): Promise<QueuedUpdate | undefined> {
    // A dispatcher has loaded a page that it was given when the turn is over.
    while (this.#options.reader().isBeingGiven(updateId)) await nextTurn(this.#services.clock)
    const [loaded] = this.#backlog.after(updateId - 1, 1)
    const dropped =
      loaded?.updateId === updateId
        ? this.#dropNow(loaded)
        : await this.#options.reader().withUnloaded(updateId, (update) => this.#dropNow(update))
    await dropped?.written
    return dropped?.update
  }

  /**
   * Removes all pending updates that an erasure means, wherever they are. One that is being delivered is not sent again.
   *
   * @returns what was removed; it is durable then
   * @throws STORE_UNAVAILABLE, OUTCOME_UNKNOWN
   */
  async erase(erasing: Erasing): Promise<ErasedPending> {
    const { payer } = erasing
    const erased: MutableErased = { count: 0, keys: new Set(), inFlight: [] }
    const isMeant = (update: QueuedUpdate): boolean =>
      erasing.isMeant({ orderingKey: update.orderingKey, text: textOf(update) })
    const erase = (updates: readonly QueuedUpdate[]): void => {
      if (updates.length === 0) return
      erasing.counted(this.#eraseNow(updates, erased))
      for (const { updateId } of updates) erasing.noted(updateId)
    }
    const loaded = this.#backlog.after(0, Number.POSITIVE_INFINITY)
    const look = (slice: readonly WindowEntry[]): void => {
      payer?.charge(pendingCostMs(slice))
      erase(slice.filter((update) => !update.isRemoved && isMeant(update)))
    }
    await this.#inSlices(loaded, look, payer)
    const reader = this.#options.reader()
    await payer?.turn()
    // Polls of this queue wait for the end of this scan, so it waits for nobody. What it costs is paid before the next one.
    await reader.eachUnloaded(async (updates) => {
      payer?.charge(pendingCostMs(updates))
      const found = updates.filter(isMeant)
      if (found.length === 0) return
      // A dispatcher has loaded a page that it was given when the turn is over.
      while (found.some(({ updateId }) => reader.isBeingGiven(updateId))) {
        await nextTurn(this.#services.clock)
      }
      erase(found)
      await this.#stored.settled()
    })
    await this.#stored.settled()
    return erased
  }

  /** Returns those that were still in the queue. */
  #eraseNow(updates: readonly QueuedUpdate[], erased: MutableErased): readonly QueuedUpdate[] {
    const holder = this.#options.holder()
    for (const update of updates) {
      if (holder?.abandon(update) === false) erased.inFlight.push(update)
      erased.keys.add(update.orderingKey)
    }
    const removed = this.#take(updates)
    erased.count += removed.count
    this.#services.counters.add('updates_dropped', removed.count)
    void this.#commitRemoval(removed, {})
    const ids = new Set(removed.updateIds)
    return updates.filter(({ updateId }) => ids.has(updateId))
  }

  /** The removal is wrapped, so that nobody waits for it while the reader is busy. */
  #dropNow(update: QueuedUpdate): { update: QueuedUpdate; written: Promise<void> } {
    const isGiven = this.#options.reader().isBeingGiven(update.updateId)
    if (isGiven || this.#options.holder()?.release(update) === false) {
      throw new PostboteError('UPDATE_IN_DELIVERY')
    }
    if (this.#isKept) this.#options.keeps()
    const kept = this.#isKept ? [leftUpdateOf(update, this.#leaving('dropped'))] : undefined
    const removed = this.#take([update])
    this.#services.counters.add('updates_dropped', removed.count)
    return { update, written: this.#commitRemoval(removed, { kept, waited: true }) }
  }

  /**
   * Removes the expired updates in the window, for a poll.
   *
   * @returns a promise only if there are very many
   */
  dropExpired(nowS: number): Promise<void> | undefined {
    const expired = this.#expiredInWindow(nowS)
    if (expired.length > removedPerOperationMax) {
      return this.#inSlices(expired, (slice) => this.#drop(slice))
    }
    this.#drop(expired)
    return undefined
  }

  #expiredInWindow(nowS: number): readonly WindowEntry[] {
    return this.#backlog
      .after(0, Number.POSITIVE_INFINITY)
      .filter((entry) => entry.expiresAtS <= nowS)
  }

  /**
   * Calls `visit` with one slice of a long list after the other, one per turn of the event loop, the first one immediately
   * unless its payer waits. An item may have changed since the list was made.
   */
  async #inSlices<Item>(
    items: readonly Item[],
    visit: (slice: readonly Item[]) => void,
    payer?: LookPayer,
  ): Promise<void> {
    for (let start = 0; start < items.length; start += removedPerOperationMax) {
      if (start > 0) await nextTurn(this.#services.clock)
      await payer?.turn()
      visit(items.slice(start, start + removedPerOperationMax))
    }
  }

  #isHeld(update: PendingUpdate): boolean {
    const { updateId } = update
    const isHeld = this.#options.holder()?.holds(update) === true
    return isHeld || this.#options.reader().isBeingGiven(updateId)
  }

  /** Removes updates that the sweep found expired. With a webhook they count as lost. */
  #expire(updates: readonly QueuedUpdate[]): void {
    if (this.#services.isWebhookActive()) {
      const why = { reason: 'expired', attempts: 0, lastError: undefined } as const
      this.addDeadLetters(updates.map((update) => ({ ...why, update })))
    } else {
      this.#drop(updates)
    }
  }

  #drop(expired: readonly QueuedUpdate[]): void {
    const removed = this.#take(expired)
    this.#services.counters.add('updates_expired', removed.count)
    if (removed.count > 0) this.#services.lostByExpiry(removed.count)
    void this.#commitRemoval(removed, {
      kept: this.#keptOf(expired, removed, { reason: 'expired' }),
    })
  }

  /** Removes updates from the queue, loaded or not. Updates that have already left are skipped. */
  #take(updates: readonly PendingUpdate[]): RemovedEntries {
    const removed = this.#backlog.remove(updates)
    this.#options.reader().removeUnloaded(updates, removed)
    assert(removed.updateIds.length === removed.count, 'each removed update has one id')
    return removed
  }

  /** Returns what is kept of updates that have left; undefined if nothing is. */
  #keptOf(
    updates: readonly PendingUpdate[],
    { updateIds }: RemovedEntries,
    {
      reason,
      attempts,
    }: {
      readonly reason: 'delivered' | 'expired'
      readonly attempts?: readonly number[] | undefined
    },
  ): DeleteOperation['kept'] {
    if (!this.#isKept) return undefined
    this.#options.keeps()
    const leaving = this.#leaving(reason)
    const left = new Set(updateIds)
    return updates.flatMap((update, nth) =>
      isQueued(update) && left.delete(update.updateId)
        ? [leftUpdateOf(update, { ...leaving, attempts: attempts?.[nth] ?? 0 })]
        : [],
    )
  }

  /** Whether updates that leave are kept to be looked at. */
  get #isKept(): boolean {
    return this.#services.retention().ms > 0
  }

  #leaving<Reason extends LeaveReason>(reason: Reason): Leaving<Reason> {
    return { reason, leftAtMs: this.#services.clock.nowMs() }
  }

  #commitRemoval(
    removed: RemovedEntries,
    { kept, alongside = [], waited = false }: RemovalExtras,
  ): Promise<void> {
    const { updateIds, count, bytes: removedBytes } = removed
    if (count === 0) return done
    const { floor } = this.#backlog
    const queue = this.#services.id
    const removal = { kind: 'delete', queue, updateIds, removedBytes, floor, kept } as const
    const written = (): void => this.#options.reader().written(updateIds)
    const committed = this.#stored.commit([removal, ...alongside], waited)
    committed.then(written, written)
    return committed
  }
}

/** Pending updates that were erased. */
export interface ErasedPending {
  readonly count: number
  /** The ordering keys, as they are stored. */
  readonly keys: ReadonlySet<string>
  /** Those that were being delivered: an attempt that has begun goes on. */
  readonly inFlight: readonly PendingUpdate[]
}

interface MutableErased extends ErasedPending {
  count: number
  readonly keys: Set<string>
  readonly inFlight: PendingUpdate[]
}

/** What is committed with a removal. */
interface RemovalExtras extends Pick<DeleteOperation, 'kept'> {
  readonly alongside?: readonly Operation[]
  /** Whether somebody waits for the result. */
  readonly waited?: boolean
}

/** Returns the text of an update as it is stored: its body has the id before that. */
function textOf(update: QueuedUpdate): Buffer {
  const body = update.body()
  return body.subarray(body.indexOf(comma) + 1, -1)
}

const comma = 0x2c
const done = Promise.resolve()
