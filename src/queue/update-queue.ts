/**
 * One queue of one bot, as pollers, webhooks and producers see it: it gives ids, keeps the limits, and makes durable
 * what enters and leaves. What is pending is in `Backlog`, what of it must be read from disk in `QueueReader`.
 *
 * Ids are allocated when an update is accepted, in memory; it becomes visible to polls and webhooks when its
 * group is synced (`committed`), so that no crash can give its id to another update.
 */
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError } from '../errors.ts'
import {
  offsetBehindMax,
  queueUnreadAfterMs,
  removedPerOperationMax,
  updateIdRenumber,
} from '../limits.ts'
import type { QueueId } from '../shard/keys.ts'
import type {
  AdvanceOperation,
  IdempotencyFact,
  Operation,
  PushOperation,
} from '../shard/operations.ts'
import { emptyQueueState, type QueueState } from '../shard/record.ts'
import type { Shard } from '../shard/shard.ts'
import type {
  DeliverySource,
  LostUpdate,
  PendingUpdate,
  UpdateHolder,
} from '../webhook/delivery-source.ts'
import { type Advanced, Backlog } from './backlog.ts'
import { DeadLetters } from './dead-letters.ts'
import { randomFirstId } from './first-id.ts'
import { inSlices } from './in-slices.ts'
import { assertRoom, type QueueLimits } from './queue-limits.ts'
import { QueueReader } from './queue-reader.ts'
import { type QueuedUpdate, isQueued } from './queued-update.ts'
import type { RemovedEntries, WindowEntry } from './window.ts'
import type { WindowBudget } from './window-budget.ts'

export interface UpdateQueueOptions {
  readonly id: QueueId
  readonly shard: Shard
  readonly clock: Clock
  readonly random: () => number
  readonly limits: QueueLimits
  readonly budget: WindowBudget
  readonly counters: Counters
  /** While there is one, an update that expires was lost by it and becomes a dead letter. */
  isWebhookActive(): boolean
  /** A webhook did not get so many updates before their time had passed. */
  lostByExpiry(count: number): void
}

/** A checked update on its way in. */
export interface AcceptedUpdate {
  readonly typeNumber: number
  readonly orderingKey: string
  readonly expiresAtS: number
  readonly text: Buffer
  readonly idempotency?: IdempotencyFact | undefined
}

export class UpdateQueue implements DeliverySource {
  readonly id: QueueId
  readonly #options: UpdateQueueOptions
  readonly #backlog: Backlog
  /** Made when it is first needed: most queues in memory have nothing that is on disk only. */
  #ownReader: QueueReader | undefined
  /** Most queues never have any. */
  #letters: DeadLetters | undefined
  #nextId: number
  #syncingCount = 0
  #syncingBytes = 0
  #uncommitted = 0
  #renumbering: Promise<void> | undefined
  #lastReadMs = Number.NEGATIVE_INFINITY
  /** The dispatcher of an active webhook. */
  #holder: UpdateHolder | undefined

  constructor(options: UpdateQueueOptions, stored: QueueState | undefined) {
    this.id = options.id
    this.#options = options
    const state = stored ?? emptyQueueState(firstIdOf(options))
    options.shard.track(options.id, state)
    this.#nextId = state.nextId
    this.#backlog = new Backlog(state, options.budget)
  }

  get #reader(): QueueReader {
    const { id: queue, shard, clock } = this.#options
    this.#ownReader ??= new QueueReader({
      queue,
      shard,
      clock,
      backlog: this.#backlog,
      settled: () => this.#settled(),
    })
    return this.#ownReader
  }

  get #isReading(): boolean {
    return this.#ownReader?.isWorking === true
  }

  get letters(): DeadLetters {
    const { id, shard, clock, counters } = this.#options
    this.#letters ??= new DeadLetters({
      id,
      shard,
      clock,
      counters,
      commit: (operations, waited) => this.#commit(operations, waited),
      settled: () => this.#settled().catch(ignore),
    })
    return this.#letters
  }

  get pendingCount(): number {
    return this.#backlog.liveCount
  }

  get pendingBytes(): number {
    return this.#backlog.liveBytes
  }

  get nextId(): number {
    return this.#nextId
  }

  /** Nothing is under way, so that the queue may be dropped from memory and read again. */
  get isQuiet(): boolean {
    return this.#uncommitted === 0 && this.#syncingCount === 0 && !this.#isReading
  }

  /** The id of the oldest pending update, or of the next one. */
  get oldestId(): number {
    return this.#backlog.oldestId
  }

  /** Wall time at which the oldest pending update was accepted. */
  async oldestAcceptedAtS(): Promise<number | undefined> {
    const { loadedCount, liveCount, hasGap } = this.#backlog
    if (liveCount > 0 && (hasGap || loadedCount === 0)) return this.#reader.oldestAcceptedAtS()
    return this.#backlog.first()?.acceptedAtS
  }

  /**
   * Allocates the next id. The caller commits the operation in the same turn, in this order.
   * Throws UPDATE_TOO_LARGE, QUEUE_FULL, ID_SPACE_EXHAUSTED or STORE_UNAVAILABLE; then nothing has changed.
   */
  push(update: AcceptedUpdate): PushOperation {
    if (this.#backlog.isDetached || this.#renumbering !== undefined) {
      throw new PostboteError('STORE_UNAVAILABLE')
    }
    const load = {
      count: this.#backlog.liveCount + this.#syncingCount,
      bytes: this.#backlog.liveBytes + this.#syncingBytes,
      nextId: this.#nextId,
    }
    assertRoom(this.#options.limits, load, update.text.length)
    const updateId = this.#nextId
    this.#nextId += 1
    this.#syncingCount += 1
    this.#syncingBytes += update.text.length
    return {
      kind: 'push',
      queue: this.id,
      updateId,
      typeNumber: update.typeNumber,
      orderingKey: update.orderingKey,
      acceptedAtS: Math.floor(this.#options.clock.nowMs() / 1000),
      expiresAtS: update.expiresAtS,
      text: update.text,
      idempotency: update.idempotency,
    }
  }

  /** The update of a pushed operation is synced: it may be given out. Called in id order. */
  committed(operation: PushOperation): void {
    this.#syncingCount -= 1
    this.#syncingBytes -= operation.text.length
    if (this.#backlog.add(operation) && this.#isWanted) this.#backlog.keep(operation)
  }

  /** Lets go of loaded updates that nobody reads; whoever comes reads them from disk. */
  releaseUnread(): void {
    if (this.#isRead || !this.isQuiet || this.#backlog.loadedCount === 0) return
    this.#reader.unload()
  }

  heldBy(holder: UpdateHolder | undefined): void {
    this.#holder = holder
  }

  /** Whether a new numbering should begin before the next push (SPEC 4). */
  get isDueToRenumber(): boolean {
    return this.#nextId > updateIdRenumber && this.pendingCount === 0 && this.#syncingCount === 0
  }

  /** Begins a new numbering at a fresh random id. The queue is empty and nothing is pushed meanwhile. */
  renumber(): Promise<void> {
    this.#renumbering ??= this.#renumber().finally(() => {
      this.#renumbering = undefined
    })
    return this.#renumbering
  }

  /**
   * The id an offset stands for (SPEC 4): itself where it lies in the queue's range, the oldest pending one
   * where it is 0 or far off, and for -N the N-th newest.
   */
  resolveOffset(offset: number): number | Promise<number> {
    if (offset < 0) return this.#resolveNegative(-offset)
    const oldest = this.oldestId
    const isFar = offset > this.#backlog.visibleTo || offset < oldest - offsetBehindMax
    return offset === 0 || isFar ? oldest : offset
  }

  /** Removes every update below `to`, an id `resolveOffset` gave. A promise where that must be waited for. */
  advance(to: number, kind: AdvanceOperation['kind']): void | Promise<void> {
    if (kind === 'drop') return this.#commitDrop(to)
    this.#closeGap()
    if (this.#backlog.isBeyondWindow(to)) {
      return this.#reader.advance(to).then((advanced) => this.#confirm(advanced))
    }
    this.#confirm(this.#backlog.advance(to))
    return undefined
  }

  /**
   * Takes every update below `to` out of memory and gives the operation that makes it durable, for a caller
   * who has more to commit with it. Nothing where nothing is removed.
   */
  async drop(to: number): Promise<readonly AdvanceOperation[]> {
    // Those that are being synced have their ids already.
    if (to > this.#backlog.visibleTo && this.#syncingCount > 0) {
      await this.#options.shard.commit([], { waited: true })
    }
    this.#closeGap()
    const advanced = this.#backlog.isBeyondWindow(to)
      ? await this.#reader.advance(to)
      : this.#backlog.advance(to)
    return advanced === undefined ? [] : [this.#advanceOperation('drop', advanced)]
  }

  /**
   * The oldest updates that fit one answer, at most `limit`; expired ones are removed instead. A promise
   * only where updates must be read from disk, or a great many have expired.
   */
  page(limit: number): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    this.#lastReadMs = this.#options.clock.monotonicMs()
    this.#closeGap()
    const nowS = this.#options.clock.nowMs() / 1000
    while (!this.#backlog.needsMoreFor(limit)) {
      const page = this.#backlog.page(limit, nowS)
      if (page !== undefined) return page
      const expired = this.#expiredInWindow(nowS)
      if (expired.length > removedPerOperationMax) {
        return this.#inSlices(expired, (slice) => this.#dropExpired(slice)).then(() =>
          this.page(limit),
        )
      }
      this.#dropExpired(expired)
    }
    return this.#reader.loadFor(limit).then(() => this.page(limit))
  }

  /** For the webhook's dispatcher; a poll takes pages. */
  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly QueuedUpdate[] | Promise<readonly QueuedUpdate[]> {
    this.#lastReadMs = this.#options.clock.monotonicMs()
    return this.#reader.pendingAfter(afterId, limit)
  }

  remove(updates: readonly PendingUpdate[]): void {
    const removed = this.#take(updates)
    this.#options.counters.add('updates_delivered', removed.count)
    this.#commitRemoval(removed)
  }

  bury(lost: readonly LostUpdate[]): void {
    const removed = this.#take(lost.map(({ update }) => update))
    if (removed.count === 0) return
    const left = new Set(removed.updateIds)
    const dying = lost.flatMap(({ update, ...why }) =>
      left.has(update.updateId) && isQueued(update) ? [{ ...why, update }] : [],
    )
    const expired = dying.filter(({ reason }) => reason === 'expired')
    if (expired.length > 0) {
      this.#options.counters.add('updates_expired', expired.length)
      this.#options.counters.add('webhook_expired', expired.length)
      this.#options.lostByExpiry(expired.length)
    }
    this.#commitRemoval(removed, this.letters.bury(dying))
  }

  /**
   * Removes what has expired, loaded or not, except what a webhook has in hand. Whether that was all. Reads the
   * whole queue where it is not loaded.
   */
  async removeExpired(): Promise<boolean> {
    const nowS = this.#options.clock.nowMs() / 1000
    this.#holder?.giveUpExpired()
    let isComplete = true
    const removable = (update: PendingUpdate): boolean => {
      const isHeld = this.#isHeld(update)
      if (isHeld) isComplete = false
      return !isHeld
    }
    await this.#inSlices(this.#expiredInWindow(nowS), (slice) =>
      this.#expire(slice.filter(removable)),
    )
    await this.#reader.eachUnloaded(async (updates) => {
      const expired = updates.filter((update) => update.expiresAtS <= nowS && removable(update))
      this.#expire(expired)
      if (expired.length > 0) await this.#settled()
    })
    return isComplete
  }

  /**
   * The end of this object, whose queue is dropped from memory or read anew: it holds nothing any more and
   * changes nothing any more. A call that still has it gets STORE_UNAVAILABLE where it would.
   */
  detach(): void {
    this.#backlog.detach()
  }

  /** Somebody has asked for updates of late; else new ones need not be in memory. */
  get #isRead(): boolean {
    return this.#options.clock.monotonicMs() - this.#lastReadMs < queueUnreadAfterMs
  }

  /** A webhook that has handled all before a new update takes it at once. */
  get #isWanted(): boolean {
    const { loadedCount, liveCount } = this.#backlog
    return this.#isRead || (this.#holder !== undefined && loadedCount === liveCount - 1)
  }

  #confirm(advanced: Advanced | undefined): void {
    if (advanced !== undefined)
      void this.#commit([this.#advanceOperation('confirm', advanced)], false)
  }

  async #commitDrop(to: number): Promise<void> {
    const operations = await this.drop(to)
    if (operations.length > 0) await this.#commit(operations, true)
  }

  #advanceOperation(kind: AdvanceOperation['kind'], advanced: Advanced): AdvanceOperation {
    const counter = kind === 'confirm' ? 'updates_confirmed' : 'updates_dropped'
    this.#options.counters.add(counter, advanced.removedCount)
    return { kind, queue: this.id, ...advanced }
  }

  async #renumber(): Promise<void> {
    const nextId = randomFirstId(this.#options.random)
    await this.#options.shard.clearUpdates(this.id)
    await this.#commit([{ kind: 'renumber', queue: this.id, nextId }], true)
    this.#backlog.restartAt(nextId)
    this.#nextId = nextId
    this.#holder?.renumbered()
  }

  async #resolveNegative(newest: number): Promise<number> {
    if (newest >= this.#backlog.liveCount) return this.oldestId
    this.#closeGap()
    if (this.#backlog.isLoaded) return this.#backlog.newestId(newest) ?? this.oldestId
    // Else removals that are not written yet would be counted among the newest.
    await this.#settled()
    return (await this.#reader.newestId(newest)) ?? this.oldestId
  }

  #expiredInWindow(nowS: number): readonly WindowEntry[] {
    return this.#backlog
      .after(0, Number.POSITIVE_INFINITY)
      .filter((entry) => entry.expiresAtS <= nowS)
  }

  #inSlices<Item>(items: readonly Item[], visit: (slice: readonly Item[]) => void): Promise<void> {
    return inSlices(items, { clock: this.#options.clock, sliceMax: removedPerOperationMax, visit })
  }

  #isHeld(update: PendingUpdate): boolean {
    return this.#holder?.holds(update) === true || this.#reader.isBeingGiven(update.updateId)
  }

  /** What the sweep has found: lost where there is a webhook it was to go to. */
  #expire(updates: readonly QueuedUpdate[]): void {
    if (this.#options.isWebhookActive()) {
      const why = { reason: 'expired', attempts: 0, lastError: undefined } as const
      this.bury(updates.map((update) => ({ ...why, update })))
    } else {
      this.#dropExpired(updates)
    }
  }

  #dropExpired(updates: readonly QueuedUpdate[]): void {
    const removed = this.#take(updates)
    this.#options.counters.add('updates_expired', removed.count)
    this.#commitRemoval(removed)
  }

  /** Takes updates out of the queue, in the window or not; those that have left it already are passed over. */
  #take(updates: readonly PendingUpdate[]): RemovedEntries {
    const removed = this.#backlog.remove(updates)
    this.#reader.removeUnloaded(updates, removed)
    return removed
  }

  #commitRemoval(removed: RemovedEntries, alongside: readonly Operation[] = []): void {
    const { updateIds, count, bytes: removedBytes } = removed
    if (count === 0) return
    const { floor } = this.#backlog
    const removal = { kind: 'delete', queue: this.id, updateIds, removedBytes, floor } as const
    const written = (): void => this.#reader.written(updateIds)
    this.#commit([removal, ...alongside], false).then(written, written)
  }

  /** Before anything that goes by the oldest updates: a webhook may have left them behind the window. */
  #closeGap(): void {
    if (this.#backlog.hasGap) this.#reader.unload()
  }

  async #settled(): Promise<void> {
    if (this.#uncommitted > 0) await this.#options.shard.commit([], { waited: true })
  }

  /** Need not be waited for: a failure is the shard's to handle. */
  #commit(operations: readonly Operation[], waited: boolean): Promise<void> {
    if (this.#backlog.isDetached) return refuseDetached()
    this.#uncommitted += 1
    const done = this.#options.shard.commit(operations, { waited })
    const settle = (): void => {
      this.#uncommitted -= 1
    }
    done.then(settle, settle)
    return done
  }
}

/** Above all that were lost with the record of a queue that was there before. */
function firstIdOf({ random, shard }: UpdateQueueOptions): number {
  return Math.max(randomFirstId(random), shard.firstIdMin)
}

function ignore(): void {}

/** Marked as handled, as commits are that nobody waits for. */
function refuseDetached(): Promise<void> {
  const refused = Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
  refused.catch(ignore)
  return refused
}
