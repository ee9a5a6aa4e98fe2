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
import { answerBytesMax, offsetBehindMax, updateIdMax, updateIdRenumber } from '../limits.ts'
import type { QueueId } from '../store/keys.ts'
import type { AdvanceOperation, PushOperation } from '../store/operations.ts'
import type { QueueState } from '../store/record.ts'
import type { Shard } from '../store/shard.ts'
import type { DeliverySource, RemovalReason } from '../webhook/delivery-source.ts'
import { randomFirstId } from './first-id.ts'
import { countThatFit } from './page.ts'
import { type Removed, Window, type WindowEntry } from './window.ts'
import type { WindowBudget } from './window-budget.ts'

const loadCount = 500
const loadBytesMax = 8 * 1024 * 1024
/** More than this of one queue is not kept just because it was pushed; it is read when it is wanted. */
const windowBytesMax = 8 * 1024 * 1024

export interface QueueLimits {
  readonly updateBytesMax: number
  readonly pendingUpdatesMax: number
  readonly pendingBytesMax: number
}

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
  #loading: Promise<void> | undefined
  #renumbering: Promise<void> | undefined

  constructor(options: UpdateQueueOptions, stored: QueueState | undefined) {
    this.id = options.id
    this.#options = options
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
    return this.#uncommitted === 0 && this.#syncingCount === 0 && this.#loading === undefined
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
   * Throws UPDATE_TOO_LARGE, QUEUE_FULL or ID_SPACE_EXHAUSTED; then nothing has changed.
   */
  push(update: AcceptedUpdate): PushOperation {
    this.#assertRoomFor(update)
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
    const isComplete = this.#loadedTo === this.#visibleTo && this.#loading === undefined
    this.#visibleTo = operation.updateId + 1
    this.#liveCount += 1
    this.#liveBytes += operation.text.length
    if (!isComplete || budget.isSpent || this.#window.bytes >= windowBytesMax) return
    if (this.#window.liveCount === 0) this.#floor = operation.updateId
    this.#append(operation)
    this.#loadedTo = this.#visibleTo
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
    if (this.#mustLoadUpTo(to)) return this.#advanceBeyondWindow(to, kind)
    const operation = this.#take(to, kind)
    if (operation === undefined) return undefined
    const isWaitedFor = kind === 'drop'
    const done = this.#commit(operation, isWaitedFor)
    return isWaitedFor ? done : undefined
  }

  /**
   * Takes every update below `to` out of memory and gives the operation that makes it durable, for a caller
   * who has more to commit with it. Nothing where nothing is removed.
   */
  async drop(to: number): Promise<readonly AdvanceOperation[]> {
    while (this.#mustLoadUpTo(to)) await this.#loadMore()
    const operation = this.#take(to, 'drop')
    return operation === undefined ? [] : [operation]
  }

  /**
   * The oldest updates that fit one answer, at most `limit`; expired ones are removed instead. A promise
   * only where updates must be read from disk.
   */
  page(limit: number): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    if (this.#needsMoreFor(limit)) return this.#loadFor(limit).then(() => this.page(limit))
    const nowS = this.#options.clock.nowMs() / 1000
    const candidates = this.#window.after(0, limit)
    const expired = candidates.filter((entry) => entry.expiresAtS <= nowS)
    if (expired.length > 0) {
      this.#removeEntries(expired, 'expired')
      return this.page(limit)
    }
    const textBytes = candidates.map((entry) => entry.textBytes)
    const length = countThatFit(textBytes, limit)
    return length === candidates.length ? candidates : candidates.slice(0, length)
  }

  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    const found = this.#window.after(afterId, limit)
    if (found.length > 0 || this.#loadedTo >= this.#visibleTo) return found
    return this.#loadMore().then(() => this.pendingAfter(afterId, limit))
  }

  remove(updateIds: readonly number[], reason: RemovalReason): void {
    const entries: WindowEntry[] = []
    for (const updateId of updateIds) {
      const entry = this.#window.find(updateId)
      if (entry !== undefined) entries.push(entry)
    }
    this.#removeEntries(entries, reason)
  }

  /** Removes what has expired, loaded or not. Reads the whole queue where it is not loaded. */
  async removeExpired(): Promise<void> {
    const nowS = this.#options.clock.nowMs() / 1000
    const expired = this.#window
      .after(0, Number.POSITIVE_INFINITY)
      .filter((entry) => entry.expiresAtS <= nowS)
    this.#removeEntries(expired, 'expired')
    if (this.#loadedTo < this.#visibleTo) {
      await this.#exclusively(() => this.#removeExpiredOnDisk(nowS))
    }
  }

  /** Drops the loaded updates; they are read again when they are wanted. Only while `isQuiet`. */
  unload(): void {
    this.#floor = this.oldestId
    this.#options.budget.add(-this.#window.bytes)
    this.#window.clear()
    this.#loadedTo = this.#floor
  }

  /** How many there are below `to` is known only where the window reaches it, or where it is all of them. */
  #mustLoadUpTo(to: number): boolean {
    return to > this.#floor && to > this.#loadedTo && to < this.#visibleTo
  }

  #take(to: number, kind: AdvanceOperation['kind']): AdvanceOperation | undefined {
    if (to <= this.#floor) return undefined
    const from = this.#floor
    const removed = { ...this.#remove(() => this.#window.removeBelow(to)) }
    if (to >= this.#visibleTo) {
      removed.count += this.#liveCount
      removed.bytes += this.#liveBytes
      this.#liveCount = 0
      this.#liveBytes = 0
      this.#loadedTo = this.#visibleTo
    }
    this.#floor = Math.min(to, this.#visibleTo)
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

  #assertRoomFor(update: AcceptedUpdate): void {
    const { updateBytesMax, pendingUpdatesMax, pendingBytesMax } = this.#options.limits
    const length = update.text.length
    if (length > updateBytesMax) {
      throw new PostboteError('UPDATE_TOO_LARGE', {
        detail: `${length} bytes, at most ${updateBytesMax} are accepted`,
      })
    }
    const count = this.#liveCount + this.#syncingCount
    const bytes = this.#liveBytes + this.#syncingBytes
    if (count >= pendingUpdatesMax || bytes + length > pendingBytesMax) {
      throw new PostboteError('QUEUE_FULL', {
        detail: `${count} updates of at most ${pendingUpdatesMax}, ${bytes} bytes of at most ${pendingBytesMax}`,
      })
    }
    if (this.#nextId > updateIdMax) throw new PostboteError('ID_SPACE_EXHAUSTED')
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
    return (await this.#newestOnDisk(newest)) ?? this.oldestId
  }

  /** The id of the `newest`-th update from the end, read backwards page by page. */
  async #newestOnDisk(newest: number): Promise<number | undefined> {
    let to = this.#visibleTo
    let left = newest
    let oldest: number | undefined
    while (left > 0) {
      const updates = await this.#options.shard.readUpdates({
        queue: this.id,
        from: this.#floor,
        to,
        limit: Math.min(left, loadCount),
        reverse: true,
      })
      const last = updates.at(-1)
      if (last === undefined) break
      oldest = last.updateId
      to = last.updateId
      left -= updates.length
    }
    return oldest
  }

  async #advanceBeyondWindow(to: number, kind: AdvanceOperation['kind']): Promise<void> {
    while (this.#loadedTo < to && this.#loadedTo < this.#visibleTo) {
      await this.advance(Math.min(to, this.#loadedTo), kind)
      await this.#loadMore()
    }
    await this.advance(to, kind)
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
    return this.#exclusively(async () => {
      const to = this.#visibleTo
      const updates = await this.#options.shard.readUpdates({
        queue: this.id,
        from: Math.max(this.#loadedTo, this.#floor),
        to,
        limit: loadCount,
        bytesMax: loadBytesMax,
      })
      const isFirst = this.#window.liveCount === 0
      for (const update of updates) {
        if (update.updateId >= Math.max(this.#loadedTo, this.#floor)) this.#append(update)
      }
      const last = updates.at(-1)
      const readTo = last === undefined ? to : last.updateId + 1
      this.#loadedTo = Math.max(this.#loadedTo, readTo)
      if (isFirst) this.#floor = Math.max(this.#floor, this.oldestId)
    })
  }

  /** Runs one piece of disk work at a time, so that none sees the other's half. */
  async #exclusively(work: () => Promise<void>): Promise<void> {
    while (this.#loading !== undefined) await this.#loading
    const loading = work().finally(() => {
      this.#loading = undefined
    })
    this.#loading = loading.catch(() => undefined)
    await loading
  }

  async #removeExpiredOnDisk(nowS: number): Promise<void> {
    const to = this.#visibleTo
    let from = this.#loadedTo
    while (from < to) {
      const updates = await this.#options.shard.readUpdates({
        queue: this.id,
        from,
        to,
        limit: loadCount,
        bytesMax: loadBytesMax,
      })
      const last = updates.at(-1)
      if (last === undefined) return
      from = last.updateId + 1
      const expired = updates.filter((update) => update.expiresAtS <= nowS)
      if (expired.length === 0) continue
      const removedBytes = expired.reduce((sum, update) => sum + update.text.length, 0)
      this.#liveCount -= expired.length
      this.#liveBytes -= removedBytes
      this.#options.counters.add('updates_expired', expired.length)
      const updateIds = expired.map((update) => update.updateId)
      await this.#commit(
        { kind: 'delete', queue: this.id, updateIds, removedBytes, floor: this.#floor },
        true,
      )
    }
  }

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

  #commit(operation: Parameters<Shard['commit']>[0][number], waited: boolean): Promise<void> {
    this.#uncommitted += 1
    const done = this.#options.shard.commit([operation], { waited })
    const settle = (): void => {
      this.#uncommitted -= 1
    }
    done.then(settle, settle)
    return done
  }
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
