/**
 * One queue of one bot, as pollers, webhooks and producers see it. It allocates ids, enforces the limits, and makes
 * durable what enters the queue and what is removed at its old end; `QueueRemovals` removes everything else. `Backlog` holds
 * what is pending; `QueueReader` reads the part that is only on disk.
 *
 * An id is allocated in memory when an update is accepted. The update becomes visible to polls and webhooks when its
 * group is synced (`committed`), so no crash can reassign its id to another update.
 */
import assert from 'node:assert/strict'
import { PostboteError } from '../kit/errors.ts'
import { type QueueId, queueParts } from '../shard/records/record-keys.ts'
import {
  type AdvanceOperation,
  type Operation,
  type PushOperation,
  textBytesOf,
} from '../shard/operations.ts'
import type { Surroundings } from '../kit/surroundings.ts'
import type { Tracer } from '../kit/tracing/tracer.ts'
import { emptyQueueState, type QueueState } from '../shard/records/record.ts'
import type {
  DeliverySource,
  LostUpdate,
  PendingUpdate,
  UpdateHolder,
} from '../delivery/delivery-source.ts'
import { type Advanced, Backlog, type AdvancedRange } from './window/backlog.ts'
import type { DeadLetters } from './kept/dead-letters.ts'
import type { Erasing } from './kept/erase-kept.ts'
import { randomFirstId } from '../shard/id-mark.ts'
import {
  type QueueLevels,
  assertRoom,
  assertRoomForReplay,
  type QueueLimits,
  type QueueLoad,
} from './queue-limits.ts'
import { KeptTrimmer } from './kept/kept-trimmer.ts'
import { LookBack } from './kept/look-back.ts'
import { QueueReader, type StoredQueue } from './queue-reader.ts'
import { type ErasedPending, QueueRemovals, type RemovalServices } from './queue-removals.ts'
import { observeLeft, type StoredRun } from './kept/stored-runs.ts'
import type { QueuedUpdate } from './queued-update.ts'
import type { WindowEntry, WindowUpdate, WindowBudget } from './window/window.ts'

/** Is told what happens to the updates of a queue. Must return at once and must not throw. */
export interface QueueWatcher {
  /** An update is on disk and visible. */
  pushed(operation: PushOperation): void
  /** The bot confirmed updates, or dropped them. */
  advanced(kind: AdvanceOperation['kind'], advanced: AdvancedRange): void
}

/** A checked update that is about to be pushed. */
export type AcceptedUpdate = Omit<WindowUpdate, 'updateId' | 'acceptedAtS'>

/** What a queue needs from its bot and its worker. */
export interface UpdateQueueOptions extends RemovalServices, Pick<Surroundings, 'random'> {
  readonly limits: QueueLimits
  readonly levels: Pick<QueueLevels, 'note'>
  readonly budget: WindowBudget
  /** Called when a poll has confirmed updates. */
  confirmed?(count: number): void
  /** Absent if updates are not traced. */
  readonly tracer?: Tracer | undefined
}

/**
 * Past this id a new numbering begins at the next push into an empty queue. The 483,646 ids above it are for a queue that
 * does not become empty soon.
 */
export const updateIdRenumber = 2_147_000_000
/** An offset further below the oldest update than this means "from the oldest". [ref] */
const offsetBelowOldestMax = 100_000
/**
 * A queue that nobody has read for this long keeps no pushed updates in memory. It is longer than any poll waits (50 s),
 * so a bot that polls reads from memory.
 */
const queueUnreadAfterMs = 60_000

/** One queue of one bot. */
export class UpdateQueue implements DeliverySource {
  readonly id: QueueId
  readonly #options: UpdateQueueOptions
  readonly #backlog: Backlog
  /** Created on first use, as the two below. */
  #ownStored: StoredQueue | undefined
  /** Created on first use: most queues in memory have nothing that is only on disk. */
  #ownReader: QueueReader | undefined
  /** Created on first use: most queues in memory have only updates that polls confirm. */
  #ownRemovals: QueueRemovals | undefined
  /** Created when something is kept: without retention there is nothing to trim. */
  #trimmer: KeptTrimmer | undefined
  #nextId: number
  #syncingCount = 0
  #syncingBytes = 0
  #uncommitted = 0
  #renumbering: Promise<void> | undefined
  #lastReadMs = Number.NEGATIVE_INFINITY
  /** When a poll confirmed or a webhook took an update for the last time, monotonic. */
  lastTakenMs = Number.NEGATIVE_INFINITY
  /** The dispatcher of an active webhook. */
  #holder: UpdateHolder | undefined
  #watcher: QueueWatcher | undefined

  constructor(options: UpdateQueueOptions, stored: QueueState | undefined) {
    this.id = options.id
    this.#options = options
    const state = stored ?? emptyQueueState(firstIdOf(options))
    options.shard.track(options.id, state)
    this.#nextId = state.nextId
    this.#backlog = new Backlog(state, options.budget)
  }

  get #stored(): StoredQueue {
    this.#ownStored ??= {
      id: this.id,
      shard: this.#options.shard,
      commit: (operations, waited) => this.#commit(operations, waited),
      settled: () => this.#settled(),
    }
    return this.#ownStored
  }

  get #reader(): QueueReader {
    this.#ownReader ??= new QueueReader(
      this.#stored,
      this.#backlog,
      (update) => this.#holder?.holds(update) === true,
      this.#options.clock,
    )
    return this.#ownReader
  }

  get #isReading(): boolean {
    return this.#ownReader?.isWorking === true
  }

  get #removals(): QueueRemovals {
    this.#ownRemovals ??= new QueueRemovals({
      services: this.#options,
      stored: this.#stored,
      backlog: this.#backlog,
      reader: () => this.#reader,
      holder: () => this.#holder,
      keeps: () => this.#keeps(),
    })
    return this.#ownRemovals
  }

  #keeps(): void {
    this.#trimmer ??= new KeptTrimmer(this.#stored, () => this.#options.retention())
  }

  /** The dead letters of this queue. */
  get deadLetters(): DeadLetters {
    return this.#removals.deadLetters
  }

  /** The updates that can be looked at, pending or not. */
  get lookBack(): LookBack {
    return new LookBack(this.#stored, () => this.#backlog.floor)
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

  /** True if nothing is in progress, so that the queue may be dropped from memory and loaded again. */
  get isQuiet(): boolean {
    return this.#uncommitted === 0 && this.#syncingCount === 0 && !this.#isReading
  }

  /** The id of the oldest pending update, or the next id if none is pending. */
  get oldestId(): number {
    return this.#backlog.oldestId
  }

  /** The oldest pending update, if it is in memory. */
  get loadedOldest(): WindowEntry | undefined {
    return this.#backlog.hasGap ? undefined : this.#backlog.first()
  }

  /** Returns the wall time in seconds at which the oldest pending update was accepted. */
  async oldestAcceptedAtS(): Promise<number | undefined> {
    const oldest = this.loadedOldest
    if (oldest === undefined && this.pendingCount > 0) return this.#reader.oldestAcceptedAtS()
    return oldest?.acceptedAtS
  }

  /** Accepts an update as `allocate` does, and returns the operation to commit. */
  push(update: AcceptedUpdate): PushOperation {
    return {
      kind: 'push',
      queue: this.id,
      updateId: this.allocate(update.text.length),
      typeNumber: update.typeNumber,
      orderingKey: update.orderingKey,
      acceptedAtS: Math.floor(this.#options.clock.nowMs() / 1000),
      expiresAtS: update.expiresAtS,
      ...(update.traceparent === undefined ? {} : { traceparent: update.traceparent }),
      text: update.text,
    }
  }

  /**
   * Accepts an update and allocates the next id. The caller commits the push in the same turn, in the order of the calls.
   *
   * @param textBytes - the text length of the update, in bytes
   * @throws UPDATE_TOO_LARGE, QUEUE_FULL, ID_SPACE_EXHAUSTED or STORE_UNAVAILABLE; nothing has changed then.
   */
  allocate(textBytes: number): number {
    if (this.#backlog.isDetached || this.#renumbering !== undefined) {
      throw new PostboteError('STORE_UNAVAILABLE')
    }
    const load = this.#load
    this.#options.levels.note(this.id, load, textBytes)
    assertRoom(this.#options.limits, load, textBytes)
    const updateId = this.#nextId
    this.#nextId += 1
    this.#syncingCount += 1
    this.#syncingBytes += textBytes
    return updateId
  }

  /** Whether an update of this length is larger than the server accepts. */
  isTooLarge(textBytes: number): boolean {
    return textBytes > this.#options.limits.updateBytesMax
  }

  /** Throws QUEUE_FULL if a job that replays updates must wait before it pushes one of this length. */
  assertRoomForReplay(textBytes: number): void {
    assertRoomForReplay(this.#options.limits, this.#load, textBytes)
  }

  get #load(): QueueLoad {
    return {
      count: this.#backlog.liveCount + this.#syncingCount,
      bytes: this.#backlog.liveBytes + this.#syncingBytes,
      nextId: this.#nextId,
    }
  }

  /**
   * Makes a pushed update visible, because it is synced. Call this in the order of the ids.
   *
   * @param nowMs - wall time
   */
  committed(operation: PushOperation, nowMs = this.#options.clock.nowMs()): void {
    this.#syncingCount -= 1
    this.#syncingBytes -= textBytesOf(operation)
    if (this.#backlog.add(operation) && this.#isWanted) this.#backlog.keep(operation, nowMs)
    this.#watcher?.pushed(operation)
  }

  /** Drops loaded updates that nobody has read recently. The next reader loads them from disk. */
  releaseUnread(): void {
    if (this.#isRead || !this.isQuiet || this.#backlog.loadedCount === 0) return
    this.#reader.unload()
  }

  /** Sets the dispatcher that reads this queue, or undefined when it stops. */
  heldBy(holder: UpdateHolder | undefined): void {
    this.#holder = holder
  }

  /** Sets who is told about each update, or undefined for nobody. */
  watchedBy(watcher: QueueWatcher | undefined): void {
    this.#watcher = watcher
  }

  /** Tells whether a new numbering should begin before the next push (protocol.md §4). */
  get isDueToRenumber(): boolean {
    return this.#nextId > updateIdRenumber && this.pendingCount === 0 && this.#syncingCount === 0
  }

  /**
   * Begins a new numbering at a random id. The queue must be empty; pushes are refused until this is done.
   *
   * @throws STORE_UNAVAILABLE or OUTCOME_UNKNOWN from the commit.
   */
  renumber(): Promise<void> {
    assert(this.pendingCount === 0 && this.#syncingCount === 0, 'only an empty queue is renumbered')
    this.#renumbering ??= this.#renumber().finally(() => {
      this.#renumbering = undefined
    })
    return this.#renumbering
  }

  /** Begins a new numbering if it is due. Call this before a push. It never rejects: if it fails, the push reports the error. */
  async renumberIfDue(): Promise<void> {
    if (this.isDueToRenumber) await this.renumber().catch(() => undefined)
  }

  /**
   * Resolves an offset to an update id (protocol.md §4). An offset from 100,000 below the oldest pending update up to the next id
   * is an id itself. 0 and any other offset stand for the oldest pending update, -N for the N-th newest.
   *
   * @returns a promise only if ids must be read from disk
   */
  resolveOffset(offset: number): number | Promise<number> {
    if (offset < 0) return this.#resolveNegative(-offset)
    const oldest = this.oldestId
    const isFar = offset > this.#backlog.visibleTo || offset < oldest - offsetBelowOldestMax
    return offset === 0 || isFar ? oldest : offset
  }

  /**
   * Removes every update below `to`.
   *
   * @param to - an id that `resolveOffset` returned
   * @param kind - whether the bot confirms the updates or drops them
   * @returns a promise if the caller must wait: for a drop to become durable, or for a count on disk
   */
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
   * Removes every update below `to` from memory.
   *
   * @param options.isKept - whether they are kept to be looked at; by default as the retention of the queue says
   * @returns the operation that makes the removal durable, for a caller that commits it together with others; empty if
   *   nothing was removed
   */
  async drop(
    to: number,
    { isKept = this.#options.retention().ms > 0 } = {},
  ): Promise<readonly AdvanceOperation[]> {
    // Updates that are being synced already have ids.
    if (to > this.#backlog.visibleTo && this.#syncingCount > 0) {
      await this.#options.shard.commit([], { waited: true })
    }
    this.#closeGap()
    const advanced = this.#backlog.isBeyondWindow(to)
      ? await this.#reader.advance(to)
      : this.#backlog.advance(to)
    return advanced === undefined ? [] : [this.#advanceOperation('drop', advanced, isKept)]
  }

  /**
   * Returns the oldest updates that fit one reply. Expired updates are removed instead.
   *
   * @param limit - the maximum number of updates
   * @param readMs - monotonic time
   * @returns a promise only if updates must be read from disk or very many have expired
   */
  page(
    limit: number,
    readMs = this.#options.clock.monotonicMs(),
  ): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    this.#lastReadMs = readMs
    this.#closeGap()
    // Most polls find nothing that could have expired.
    const nowS = this.#backlog.loadedCount === 0 ? 0 : this.#options.clock.nowMs() / 1000
    while (!this.#backlog.needsMoreFor(limit)) {
      const page = this.#backlog.page(limit, nowS)
      if (page !== undefined) {
        if (this.#backlog.isOverBudget) this.#options.clock.soon(() => this.#releaseTaken())
        return page
      }
      const dropping = this.#removals.dropExpired(nowS)
      if (dropping !== undefined) return dropping.then(() => this.page(limit))
    }
    return this.#reader.loadFor(limit).then(() => this.page(limit))
  }

  /** What the windows of the worker hold must not grow with the number of queues that are polled. The next poll reads again. */
  #releaseTaken(): void {
    if (this.#backlog.isOverBudget && !this.#isReading) this.#reader.unload()
  }

  /** Returns pending updates for the webhook's dispatcher, as `DeliverySource` describes. Polls use `page`. */
  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly QueuedUpdate[] | Promise<readonly QueuedUpdate[]> {
    this.#lastReadMs = this.#options.clock.monotonicMs()
    return this.#reader.pendingAfter(afterId, limit)
  }

  remove(updates: readonly PendingUpdate[], attempts?: readonly number[]): void {
    this.lastTakenMs = this.#options.clock.monotonicMs()
    this.#removals.remove(updates, attempts)
  }

  /** Removes one pending update, as `QueueRemovals.dropOne` describes. */
  dropOne(updateId: number): Promise<QueuedUpdate | undefined> {
    return this.#removals.dropOne(updateId)
  }

  /** Removes all pending updates that an erasure means, as `QueueRemovals.erase` describes. */
  erase(erasing: Erasing): Promise<ErasedPending> {
    return this.#removals.erase(erasing)
  }

  /** Whether an update that was erased is still being delivered. */
  isInFlight(update: PendingUpdate): boolean {
    return this.#holder?.release(update) === false
  }

  /** The id below which no update is pending. */
  get floor(): number {
    return this.#backlog.floor
  }

  addDeadLetters(lost: readonly LostUpdate[]): void {
    this.#removals.addDeadLetters(lost)
  }

  /** Removes expired updates, as `QueueRemovals` describes. */
  removeExpired(): Promise<boolean> {
    return this.#removals.removeExpired()
  }

  /**
   * Ends the use of this object because its queue is dropped from memory or loaded again. It releases its updates and
   * changes nothing from now on. Calls that would change something fail with STORE_UNAVAILABLE.
   */
  detach(): void {
    this.#backlog.detach()
  }

  /** Whether this object is used no more: what is read through it is nothing. */
  get isVoid(): boolean {
    return this.#backlog.isDetached
  }

  /** True if updates were read recently. Otherwise new updates need not be in memory. */
  get #isRead(): boolean {
    return this.#options.clock.monotonicMs() - this.#lastReadMs < queueUnreadAfterMs
  }

  /**
   * True if a new update should be loaded. A dispatcher that has handled everything before it delivers it immediately.
   */
  get #isWanted(): boolean {
    const { loadedCount, liveCount } = this.#backlog
    return this.#isRead || (this.#holder !== undefined && loadedCount === liveCount - 1)
  }

  #confirm(advanced: Advanced | undefined): void {
    if (advanced === undefined) return
    this.lastTakenMs = this.#options.clock.monotonicMs()
    this.#options.confirmed?.(advanced.removedCount)
    void this.#observeConfirmed(advanced)
    if (advanced.traced !== undefined) this.#traceConfirmed(advanced.traced)
    void this.#commit([this.#advanceOperation('confirm', advanced)], false)
  }

  /** Counts how late the updates were. Those that were not in memory, as after a restart, are read first. */
  async #observeConfirmed(advanced: Advanced): Promise<void> {
    const { clock, counters } = this.#options
    const atMs = clock.nowMs()
    const observe = (stored: readonly StoredRun[], count: number): number =>
      observeLeft(counters, 'delivery_polling', { stored, count, atMs })
    const unread = observe(advanced.stored, advanced.removedCount)
    if (unread === 0) return
    const stored = await this.#reader.storedOf(advanced).catch(() => [])
    const left = observe(stored, unread)
    // At most as old as the last one that was read.
    if (left > 0) observe([{ storedAtMs: stored.at(-1)?.storedAtMs ?? atMs, count: left }], left)
  }

  #traceConfirmed(traced: readonly WindowEntry[]): void {
    const { tracer, clock } = this.#options
    const endMs = clock.nowMs()
    const names = queueParts(this.id)
    for (const { traceparent, updateId, storedAtMs: startMs } of traced) {
      if (traceparent === undefined) continue
      tracer?.waited({ ...names, traceparent, updateId, mode: 'polling', startMs, endMs })
    }
  }

  async #commitDrop(to: number): Promise<void> {
    const operations = await this.drop(to)
    if (operations.length > 0) await this.#commit(operations, true)
  }

  #advanceOperation(
    kind: AdvanceOperation['kind'],
    advanced: Advanced,
    isKept = this.#options.retention().ms > 0,
  ): AdvanceOperation {
    const counter = kind === 'confirm' ? 'updates_confirmed' : 'updates_dropped'
    this.#options.counters.add(counter, advanced.removedCount)
    this.#watcher?.advanced(kind, advanced)
    const keptSinceMs = isKept ? this.#options.clock.nowMs() : undefined
    if (isKept) this.#keeps()
    const { from, floor, removedCount, removedBytes } = advanced
    return { kind, queue: this.id, from, floor, removedCount, removedBytes, keptSinceMs }
  }

  async #renumber(): Promise<void> {
    const nextId = randomFirstId(this.#options.random)
    await this.#options.shard.clearKept(this.id)
    // Afterwards, because a trim that clearKept has waited for leaves dead ids to the reclaimer, which are used anew.
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
    // Otherwise removals that are not written yet would count among the newest.
    await this.#settled()
    return (await this.#reader.newestId(newest)) ?? this.oldestId
  }

  /**
   * Call this before any access to the oldest updates, because a webhook may have left them in the gap before the window.
   */
  #closeGap(): void {
    if (this.#backlog.hasGap) this.#reader.unload()
  }

  async #settled(): Promise<void> {
    if (this.#uncommitted > 0) await this.#options.shard.commit([], { waited: true })
  }

  /** Callers may ignore the returned promise, because the shard handles failures. */
  #commit(operations: readonly Operation[], waited: boolean): Promise<void> {
    if (this.#backlog.isDetached) return refuseDetached()
    this.#uncommitted += 1
    const done = this.#options.shard.commit(operations, { waited })
    const settle = (): void => {
      this.#uncommitted -= 1
      this.#trimmer?.mayExceed()
    }
    done.then(settle, settle)
    return done
  }
}

/** The first id must be above all ids that were lost with an earlier record of this queue. */
function firstIdOf({ random, shard }: UpdateQueueOptions): number {
  return Math.max(randomFirstId(random), shard.firstIdMin)
}

function ignore(): void {}

/** The rejection is marked as handled, because some callers ignore the promise of a commit. */
function refuseDetached(): Promise<void> {
  const refused = Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
  refused.catch(ignore)
  return refused
}
