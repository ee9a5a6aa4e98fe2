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
import { offsetBehindMax, queueUnreadAfterMs, updateIdRenumber } from '../limits.ts'
import type { QueueId } from '../store/keys.ts'
import type { AdvanceOperation, Operation, PushOperation } from '../store/operations.ts'
import type { QueueState } from '../store/record.ts'
import type { Shard } from '../store/shard.ts'
import type { StoredUpdate } from '../store/stored.ts'
import type { DeliverySource, LostUpdate, PendingUpdate } from '../webhook/delivery-source.ts'
import { type Advanced, Backlog } from './backlog.ts'
import { DeadLetters, type DyingUpdate } from './dead-letters.ts'
import { freshState, randomFirstId } from './first-id.ts'
import { assertRoom, type QueueLimits } from './queue-limits.ts'
import { QueueReader } from './queue-reader.ts'
import type { WindowEntry } from './window.ts'
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
  readonly letters: DeadLetters
  readonly #options: UpdateQueueOptions
  readonly #backlog: Backlog
  readonly #reader: QueueReader
  #nextId: number
  #syncingCount = 0
  #syncingBytes = 0
  #uncommitted = 0
  #renumbering: Promise<void> | undefined
  #lastReadMs = Number.NEGATIVE_INFINITY

  constructor(options: UpdateQueueOptions, stored: QueueState | undefined) {
    this.id = options.id
    this.#options = options
    const state = stored ?? freshState(options.random)
    options.shard.track(options.id, state)
    this.#nextId = state.nextId
    this.#backlog = new Backlog(state, options.budget)
    this.#reader = new QueueReader(options.shard, options.id, this.#backlog)
    this.letters = new DeadLetters({
      ...options,
      commit: (operations, waited) => this.#commit(operations, waited),
      settled: () => this.#settled(),
    })
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
    return this.#uncommitted === 0 && this.#syncingCount === 0 && !this.#reader.isWorking
  }

  /** The id of the oldest pending update, or of the next one. */
  get oldestId(): number {
    return this.#backlog.oldestId
  }

  /** Wall time at which the oldest pending update was accepted. */
  async oldestAcceptedAtS(): Promise<number | undefined> {
    const { loadedCount, liveCount } = this.#backlog
    if (liveCount > 0 && loadedCount === 0) await this.#reader.loadMore()
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
    }
  }

  /** The update of a pushed operation is synced: it may be given out. Called in id order. */
  committed(operation: PushOperation): void {
    this.#syncingCount -= 1
    this.#syncingBytes -= operation.text.length
    if (this.#backlog.add(operation) && this.#isRead) this.#backlog.keep(operation)
  }

  /** Lets go of loaded updates that nobody reads; whoever comes reads them from disk. Not under a webhook. */
  releaseUnread(): void {
    if (this.#isRead || !this.isQuiet || this.#backlog.loadedCount === 0) return
    this.#backlog.unload()
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
    const advanced = this.#backlog.isBeyondWindow(to)
      ? await this.#reader.advance(to)
      : this.#backlog.advance(to)
    return advanced === undefined ? [] : [this.#advanceOperation('drop', advanced)]
  }

  /**
   * The oldest updates that fit one answer, at most `limit`; expired ones are removed instead. A promise
   * only where updates must be read from disk.
   */
  page(limit: number): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    this.#lastReadMs = this.#options.clock.monotonicMs()
    const nowS = this.#options.clock.nowMs() / 1000
    while (!this.#backlog.needsMoreFor(limit)) {
      const page = this.#backlog.page(limit, nowS)
      if (page !== undefined) return page
      this.#removeExpiredInWindow(nowS)
    }
    return this.#reader.loadFor(limit).then(() => this.page(limit))
  }

  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly WindowEntry[] | Promise<readonly WindowEntry[]> {
    this.#lastReadMs = this.#options.clock.monotonicMs()
    const found = this.#backlog.after(afterId, limit)
    if (found.length > 0 || this.#backlog.isLoaded) return found
    return this.#reader.loadMore().then(() => this.pendingAfter(afterId, limit))
  }

  remove(updates: readonly PendingUpdate[]): void {
    const entries = this.#entriesOf(updates)
    this.#options.counters.add('updates_delivered', entries.length)
    this.#removeEntries(entries)
  }

  bury(lost: readonly LostUpdate[]): void {
    const dying = new Map<WindowEntry, DyingUpdate>()
    for (const { update, ...why } of lost) {
      const entry = this.#backlog.find(update.updateId)
      if (entry !== undefined) dying.set(entry, dyingOf(entry, why))
    }
    if (dying.size === 0) return
    const given = [...dying.values()]
    const expired = given.filter(({ reason }) => reason === 'expired')
    this.#options.counters.add('updates_expired', expired.length)
    // First, since it copies what is in the window.
    const letters = this.letters.bury(given)
    this.#removeEntries([...dying.keys()], letters)
  }

  /** Removes what has expired, loaded or not. Reads the whole queue where it is not loaded. */
  async removeExpired(): Promise<void> {
    const nowS = this.#options.clock.nowMs() / 1000
    this.#removeExpiredInWindow(nowS)
    await this.#reader.eachExpired(nowS, (expired) => this.#removeUnloaded(expired))
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
  }

  async #resolveNegative(newest: number): Promise<number> {
    if (newest >= this.#backlog.liveCount) return this.oldestId
    if (this.#backlog.isLoaded) return this.#backlog.newestId(newest) ?? this.oldestId
    // Else removals that are not written yet would be counted among the newest.
    if (this.#uncommitted > 0) await this.#options.shard.commit([], { waited: true })
    return (await this.#reader.newestId(newest)) ?? this.oldestId
  }

  async #removeUnloaded(updates: readonly StoredUpdate[]): Promise<void> {
    const removedBytes = this.#backlog.removeUnloaded(updates)
    this.#options.counters.add('updates_expired', updates.length)
    const updateIds = updates.map((update) => update.updateId)
    const { floor } = this.#backlog
    const letters = this.#options.isWebhookActive()
      ? this.letters.bury(updates.map((update) => dyingOfStored(update)))
      : []
    await this.#commit(
      [{ kind: 'delete', queue: this.id, updateIds, removedBytes, floor }, ...letters],
      true,
    )
  }

  #removeExpiredInWindow(nowS: number): void {
    const expired = this.#backlog
      .after(0, Number.POSITIVE_INFINITY)
      .filter((entry) => entry.expiresAtS <= nowS)
    if (expired.length === 0) return
    if (this.#options.isWebhookActive()) {
      this.bury(expired.map((update) => ({ ...onlyWaited, update })))
    } else {
      this.#options.counters.add('updates_expired', expired.length)
      this.#removeEntries(expired)
    }
  }

  /** Those that are still loaded, each once. */
  #entriesOf(updates: readonly PendingUpdate[]): WindowEntry[] {
    const entries = new Set<WindowEntry>()
    for (const { updateId } of updates) {
      const entry = this.#backlog.find(updateId)
      if (entry !== undefined) entries.add(entry)
    }
    return [...entries]
  }

  /** Takes entries, each given once, out of the queue, with what is to be durable in the same group. */
  #removeEntries(entries: readonly WindowEntry[], alongside: readonly Operation[] = []): void {
    const removed = this.#backlog.remove(entries)
    if (removed.count === 0) return
    const { floor } = this.#backlog
    const updateIds = entries.map((entry) => entry.updateId)
    const removedBytes = removed.bytes
    void this.#commit(
      [{ kind: 'delete', queue: this.id, updateIds, removedBytes, floor }, ...alongside],
      false,
    )
  }

  /** Resolves when all that was removed is so on disk, too, or never will be. */
  async #settled(): Promise<void> {
    if (this.#uncommitted > 0) await this.#options.shard.commit([], { waited: true }).catch(ignore)
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

const onlyWaited = { reason: 'expired', attempts: 0, lastError: undefined } as const

function dyingOf(entry: WindowEntry, why: Omit<LostUpdate, 'update'>): DyingUpdate {
  const { updateId, acceptedAtS, orderingKey, textBytes } = entry
  const text = (): Buffer => textIn(entry)
  return { ...why, updateId, acceptedAtS, orderingKey, textBytes, text }
}

function dyingOfStored(update: StoredUpdate): DyingUpdate {
  const { updateId, acceptedAtS, orderingKey, text } = update
  const textBytes = text.length
  return { ...onlyWaited, updateId, acceptedAtS, orderingKey, textBytes, text: () => text }
}

/** Of `{"update_id":N,<text>}`. */
function textIn(update: PendingUpdate): Buffer {
  const body = update.body()
  return body.subarray(body.length - 1 - update.textBytes, -1)
}

function ignore(): void {}

/** Marked as handled, as commits are that nobody waits for. */
function refuseDetached(): Promise<void> {
  const refused = Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
  refused.catch(ignore)
  return refused
}
