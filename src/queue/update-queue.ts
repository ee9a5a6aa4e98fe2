/**
 * One queue of one bot: ids, limits, what is pending, and the loaded part of it.
 *
 *      floor                    loadedTo                  visibleTo          nextId
 *   ---- | ---- in the window ---- | ---- on disk only ---- | -- being synced -- |
 *
 * Ids are allocated when an update is accepted, in memory; it becomes visible to polls and webhooks when its
 * group is synced (`committed`), so that no crash can give its id to another update. Below `floor` nothing is
 * live. While `loadedTo` equals `visibleTo` the window is complete and new updates join it; a queue that is
 * too deep keeps its newest on disk and reads them page by page when it gets there.
 */
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError } from '../errors.ts'
import {
  answerBytesMax,
  offsetBehindMax,
  updateEnvelopeBytes,
  updateIdRenumber,
} from '../limits.ts'
import type { QueueId } from '../store/keys.ts'
import type { AdvanceOperation, Operation, PushOperation } from '../store/operations.ts'
import type { QueueState } from '../store/record.ts'
import type { Shard } from '../store/shard.ts'
import type { DeliverySource, RemovalReason } from '../webhook/delivery-source.ts'
import { randomFirstId } from './first-id.ts'
import { assertRoom, type QueueLimits } from './queue-limits.ts'
import { QueueReader, textBytesOf } from './queue-reader.ts'
import { type Removed, Window, type WindowEntry } from './window.ts'
import type { WindowBudget } from './window-budget.ts'

/** More than this of one queue is not kept just because it was pushed; it is read when it is wanted. */
const windowBytesMax = 8 * 1024 * 1024
/** Longer than any poll waits: what is pushed in between is still given from memory. */
const unreadAfterMs = 60_000

export interface UpdateQueueOptions {
  readonly id: QueueId
  readonly shard: Shard
  readonly clock: Clock
  readonly random: () => number
  readonly limits: QueueLimits
  readonly budget: WindowBudget
  readonly counters: Counters
}

/** A checked update on its way in. */
export interface AcceptedUpdate {
  readonly typeNumber: number
  readonly orderingKey: string
  readonly expiresAtS: number
  readonly text: Buffer
}

export class UpdateQueue implements DeliverySource {
  readonly id: QueueId
  readonly #options: UpdateQueueOptions
  readonly #window = new Window()
  readonly #reader: QueueReader
  #floor: number
  #loadedTo: number
  #visibleTo: number
  #nextId: number
  /** Visible and live, in the window and on disk. */
  #liveCount: number
  #liveBytes: number
  #syncingCount = 0
  #syncingBytes = 0
  #uncommitted = 0
  #renumbering: Promise<void> | undefined
  #isDetached = false
  #lastReadMs = Number.NEGATIVE_INFINITY

  constructor(options: UpdateQueueOptions, stored: QueueState | undefined) {
    this.id = options.id
    this.#options = options
    this.#reader = new QueueReader(options.shard, options.id)
    const state = stored ?? freshState(options.random)
    options.shard.track(options.id, state)
    this.#floor = state.floor
    this.#visibleTo = state.nextId
    this.#nextId = state.nextId
    this.#liveCount = state.liveCount
    this.#liveBytes = state.liveBytes
    if (state.liveCount === 0) this.#floor = state.nextId
    this.#loadedTo = this.#floor
  }

  get pendingCount(): number {
    return this.#liveCount
  }

  get pendingBytes(): number {
    return this.#liveBytes
  }

  get nextId(): number {
    return this.#nextId
  }

  /** Nothing is under way, so that the queue may be dropped from memory and read again. */
  get isQuiet(): boolean {
    return this.#uncommitted === 0 && this.#syncingCount === 0 && !this.#reader.isWorking
  }

  /** The id of the oldest pending update, or of the next one. */
  get oldestId(): number {
    return this.#window.first()?.updateId ?? this.#loadedTo
  }

  /** Wall time at which the oldest pending update was accepted. */
  async oldestAcceptedAtS(): Promise<number | undefined> {
    if (this.#liveCount > 0 && this.#window.liveCount === 0) await this.#loadMore()
    return this.#window.first()?.acceptedAtS
  }

  /**
   * Allocates the next id. The caller commits the operation in the same turn, in this order.
   * Throws UPDATE_TOO_LARGE, QUEUE_FULL, ID_SPACE_EXHAUSTED or STORE_UNAVAILABLE; then nothing has changed.
   */
  push(update: AcceptedUpdate): PushOperation {
    if (this.#isDetached || this.#renumbering !== undefined) {
      throw new PostboteError('STORE_UNAVAILABLE')
    }
    const load = {
      count: this.#liveCount + this.#syncingCount,
      bytes: this.#liveBytes + this.#syncingBytes,
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
    }
  }

  /** The update of a pushed operation is synced: it may be given out. Called in id order. */
  committed(operation: PushOperation): void {
    const { budget } = this.#options
    this.#syncingCount -= 1
    this.#syncingBytes -= operation.text.length
    const isComplete = this.#loadedTo === this.#visibleTo
    this.#visibleTo = operation.updateId + 1
    this.#liveCount += 1
    this.#liveBytes += operation.text.length
    if (!isComplete || budget.isSpent || this.#window.bytes >= windowBytesMax) return
    if (!this.#isRead) return
    if (this.#window.liveCount === 0) this.#floor = operation.updateId
    this.#append(operation)
    this.#loadedTo = this.#visibleTo
  }

  /** Lets go of loaded updates that nobody reads; whoever comes reads them from disk. Not under a webhook. */
  releaseUnread(): void {
    if (this.#isRead || !this.isQuiet || this.#window.liveCount === 0) return
    this.#floor = this.oldestId
    this.#options.budget.add(-this.#window.bytes)
    this.#window.clear()
    this.#loadedTo = this.#floor
  }

  /** Whether a new numbering should begin before the next push (SPEC 4). */
  get isDueToRenumber(): boolean {
    return this.#nextId > updateIdRenumber && this.#liveCount === 0 && this.#syncingCount === 0
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
    const isFar = offset > this.#visibleTo || offset < oldest - offsetBehindMax
    return offset === 0 || isFar ? oldest : offset
  }

  /** Removes every update below `to`, an id `resolveOffset` gave. A promise where that must be waited for. */
  advance(to: number, kind: AdvanceOperation['kind']): void | Promise<void> {
    if (kind === 'drop') return this.#commitDrop(to)
    if (this.#isBeyondWindow(to)) return this.#takeBeyondWindow(to, kind).then(this.#confirm)
    this.#confirm(this.#take(to, kind))
    return undefined
  }

  /**
   * Takes every update below `to` out of memory and gives the operation that makes it durable, for a caller
   * who has more to commit with it. Nothing where nothing is removed.
   */
  async drop(to: number): Promise<readonly AdvanceOperation[]> {
    // Those that are being synced have their ids already.
    if (to > this.#visibleTo && this.#syncingCount > 0) {
      await this.#options.shard.commit([], { waited: true })
    }
    const operation = this.#isBeyondWindow(to)
      ? await this.#takeBeyondWindow(to, 'drop')
      : this.#take(to, 'drop')
    return operation === undefined ? [] : [operation]
  }

  /**
   * The oldest updates that fit one answer, at most `limit`; expired ones are removed instead. A promise
   * only where updates must be read from disk.
   */
  page(limit: number): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    this.#lastReadMs = this.#options.clock.monotonicMs()
    const nowS = this.#options.clock.nowMs() / 1000
    while (!this.#needsMoreFor(limit)) {
      const page = this.#window.page(limit, nowS)
      if (page !== undefined) return page
      this.#removeExpiredInWindow(nowS)
    }
    return this.#loadFor(limit).then(() => this.page(limit))
  }

  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    this.#lastReadMs = this.#options.clock.monotonicMs()
    const found = this.#window.after(afterId, limit)
    if (found.length > 0 || this.#loadedTo >= this.#visibleTo) return found
    return this.#loadMore().then(() => this.pendingAfter(afterId, limit))
  }

  remove(updateIds: readonly number[], reason: RemovalReason): void {
    const entries = new Set<WindowEntry>()
    for (const updateId of updateIds) {
      const entry = this.#window.find(updateId)
      if (entry !== undefined) entries.add(entry)
    }
    this.#removeEntries([...entries], reason)
  }

  /** Removes what has expired, loaded or not. Reads the whole queue where it is not loaded. */
  async removeExpired(): Promise<void> {
    const nowS = this.#options.clock.nowMs() / 1000
    this.#removeExpiredInWindow(nowS)
    if (this.#loadedTo < this.#visibleTo) {
      await this.#reader.exclusively(() => this.#removeExpiredOnDisk(nowS))
    }
  }

  /**
   * The end of this object, whose queue is dropped from memory or read anew: it holds nothing any more and
   * changes nothing any more. A call that still has it gets STORE_UNAVAILABLE where it would.
   */
  detach(): void {
    this.#isDetached = true
    this.#options.budget.add(-this.#window.bytes)
    this.#window.clear()
    this.#floor = this.#visibleTo
    this.#loadedTo = this.#visibleTo
  }

  /** How many there are below `to` is known only where the window reaches it, or where it is all of them. */
  #isBeyondWindow(to: number): boolean {
    return to > this.#floor && to > this.#loadedTo && to < this.#visibleTo
  }

  /** Somebody has asked for updates of late; else new ones need not be in memory. */
  get #isRead(): boolean {
    return this.#options.clock.monotonicMs() - this.#lastReadMs < unreadAfterMs
  }

  readonly #confirm = (operation: AdvanceOperation | undefined): void => {
    if (operation !== undefined) void this.#commit(operation, false)
  }

  async #commitDrop(to: number): Promise<void> {
    for (const operation of await this.drop(to)) await this.#commit(operation, true)
  }

  #take(
    to: number,
    kind: AdvanceOperation['kind'],
    onDisk: Readonly<Removed> = { count: 0, bytes: 0 },
  ): AdvanceOperation | undefined {
    if (to <= this.#floor) return undefined
    const from = this.#floor
    const removed = { ...this.#remove(() => this.#window.removeBelow(to)) }
    removed.count += onDisk.count
    removed.bytes += onDisk.bytes
    this.#liveCount -= onDisk.count
    this.#liveBytes -= onDisk.bytes
    if (to >= this.#visibleTo) {
      removed.count += this.#liveCount
      removed.bytes += this.#liveBytes
      this.#liveCount = 0
      this.#liveBytes = 0
    }
    this.#floor = Math.min(to, this.#visibleTo)
    this.#loadedTo = Math.max(this.#loadedTo, this.#floor)
    if (removed.count === 0) return undefined
    const counter = kind === 'confirm' ? 'updates_confirmed' : 'updates_dropped'
    this.#options.counters.add(counter, removed.count)
    return {
      kind,
      queue: this.id,
      from,
      floor: this.#floor,
      removedCount: removed.count,
      removedBytes: removed.bytes,
    }
  }

  async #renumber(): Promise<void> {
    const nextId = randomFirstId(this.#options.random)
    await this.#options.shard.clearUpdates(this.id)
    await this.#commit({ kind: 'renumber', queue: this.id, nextId }, true)
    this.#window.clear()
    this.#floor = nextId
    this.#loadedTo = nextId
    this.#visibleTo = nextId
    this.#nextId = nextId
  }

  async #resolveNegative(newest: number): Promise<number> {
    if (newest >= this.#liveCount) return this.oldestId
    if (this.#loadedTo >= this.#visibleTo) {
      return this.#window.idBeforeNewest(newest - 1) ?? this.oldestId
    }
    // Else removals that are not written yet would be counted among the newest.
    if (this.#uncommitted > 0) await this.#options.shard.commit([], { waited: true })
    const range = { from: this.#floor, to: this.#visibleTo }
    return (await this.#reader.newestId(newest, range)) ?? this.oldestId
  }

  /** As `#take`, where part of what is removed is only on disk: that is counted there, and not loaded. */
  #takeBeyondWindow(
    to: number,
    kind: AdvanceOperation['kind'],
  ): Promise<AdvanceOperation | undefined> {
    return this.#reader.exclusively(async () => {
      const onDisk = { count: 0, bytes: 0 }
      const from = this.#loadedTo
      await this.#reader.scan({ from, to }, (updates) => {
        onDisk.count += updates.length
        onDisk.bytes += textBytesOf(updates)
        return this.#loadedTo === from
      })
      // Nothing, where everything was removed during the scan.
      return this.#take(to, kind, onDisk)
    })
  }

  #needsMoreFor(limit: number): boolean {
    return (
      this.#loadedTo < this.#visibleTo &&
      this.#window.liveCount < limit &&
      this.#window.bytes < answerBytesMax
    )
  }

  async #loadFor(limit: number): Promise<void> {
    while (this.#needsMoreFor(limit)) await this.#loadMore()
  }

  /** Reads the next page from disk into the window. */
  #loadMore(): Promise<void> {
    return this.#reader.exclusively(async () => {
      const range = { from: this.#loadedTo, to: this.#visibleTo }
      if (range.from >= range.to) return
      const { updates, next } = await this.#reader.page(range)
      if (this.#isDetached) return
      const isFirst = this.#window.liveCount === 0
      this.#window.reserve(textBytesOf(updates) + updates.length * updateEnvelopeBytes)
      for (const update of updates) {
        if (update.updateId >= this.#loadedTo) this.#append(update)
      }
      this.#loadedTo = Math.max(this.#loadedTo, next)
      if (isFirst) this.#floor = Math.max(this.#floor, this.oldestId)
    })
  }

  #removeExpiredOnDisk(nowS: number): Promise<void> {
    const range = { from: this.#loadedTo, to: this.#visibleTo }
    return this.#reader.scan(range, async (updates) => {
      // Everything was removed during the read.
      if (this.#loadedTo !== range.from) return false
      const expired = updates.filter((update) => update.expiresAtS <= nowS)
      if (expired.length === 0) return true
      const removedBytes = textBytesOf(expired)
      this.#liveCount -= expired.length
      this.#liveBytes -= removedBytes
      this.#options.counters.add('updates_expired', expired.length)
      const updateIds = expired.map((update) => update.updateId)
      await this.#commit(
        { kind: 'delete', queue: this.id, updateIds, removedBytes, floor: this.#floor },
        true,
      )
      return true
    })
  }

  #removeExpiredInWindow(nowS: number): void {
    const expired = this.#window
      .after(0, Number.POSITIVE_INFINITY)
      .filter((entry) => entry.expiresAtS <= nowS)
    this.#removeEntries(expired, 'expired')
  }

  /** Takes entries, each given once, out of the queue. */
  #removeEntries(entries: readonly WindowEntry[], reason: RemovalReason): void {
    if (entries.length === 0) return
    const removed = this.#remove(() => this.#window.remove(entries))
    if (removed.count === 0) return
    const { counters } = this.#options
    counters.add(reason === 'expired' ? 'updates_expired' : 'updates_delivered', removed.count)
    this.#floor = Math.max(this.#floor, this.oldestId)
    void this.#commit(
      {
        kind: 'delete',
        queue: this.id,
        updateIds: entries.map((entry) => entry.updateId),
        removedBytes: removed.bytes,
        floor: this.#floor,
      },
      false,
    )
  }

  #append(
    update: PushOperation | (AcceptedUpdate & { updateId: number; acceptedAtS: number }),
  ): void {
    const before = this.#window.bytes
    this.#window.append(update)
    this.#options.budget.add(this.#window.bytes - before)
  }

  /** Takes entries out of the window and out of the counts. */
  #remove(take: () => Removed): Removed {
    const before = this.#window.bytes
    const removed = take()
    this.#options.budget.add(this.#window.bytes - before)
    this.#liveCount -= removed.count
    this.#liveBytes -= removed.bytes
    return removed
  }

  /** Need not be waited for: a failure is the shard's to handle. */
  #commit(operation: Operation, waited: boolean): Promise<void> {
    if (this.#isDetached) return refuseDetached()
    this.#uncommitted += 1
    const done = this.#options.shard.commit([operation], { waited })
    const settle = (): void => {
      this.#uncommitted -= 1
    }
    done.then(settle, settle)
    return done
  }
}

function ignore(): void {}

/** Marked as handled, as commits are that nobody waits for. */
function refuseDetached(): Promise<void> {
  const refused = Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
  refused.catch(ignore)
  return refused
}

function freshState(random: () => number): QueueState {
  const nextId = randomFirstId(random)
  return {
    nextId,
    floor: nextId,
    liveCount: 0,
    liveBytes: 0,
    idempotencyDay: 0,
    idempotencyCount: 0,
  }
}
