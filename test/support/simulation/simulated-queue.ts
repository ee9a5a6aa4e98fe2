/**
 * A bot's queue as its webhook sees it: an array that outlives processes, and a view of it for each process, whose reads
 * may be slow, short, stale or fail. A removal becomes durable some time later, so a crash restores the last removed
 * updates.
 */
import type {
  DeliverySource,
  LostUpdate,
  PendingUpdate,
  UpdateHolder,
} from '../../../src/delivery/delivery-source.ts'
import type { EventClock, ProcessClock } from './event-clock.ts'
import type { Ledger } from './ledger.ts'
import type { Luck } from './luck.ts'
import { drawMs } from './weather.ts'

export interface ReadTrouble {
  /** Fractions of the reads. */
  readonly slow: number
  readonly failing: number
  readonly readMs: number
}

export const noTrouble: ReadTrouble = { slow: 0, failing: 0, readMs: 1 }

interface Removal {
  readonly update: PendingUpdate
  readonly atMs: number
}

/** The updates on disk. */
export class StoredUpdates {
  readonly clock: EventClock
  readonly ledger: Ledger
  readonly luck: Luck
  trouble: ReadTrouble = noTrouble
  pending: PendingUpdate[] = []
  nextId = 1
  #removals: Removal[] = []
  /** The time until a removal is durable. */
  readonly lagMs = 50

  constructor(clock: EventClock, ledger: Ledger, luck: Luck) {
    this.clock = clock
    this.ledger = ledger
    this.luck = luck
  }

  push(orderingKey: string, expiresAtS: number, textBytes: number): void {
    const updateId = this.nextId++
    const text = `{"update_id":${updateId}}`
    const update = {
      updateId,
      orderingKey,
      expiresAtS,
      textBytes,
      body: () => {
        // A dropped update may still be sent until the webhook is replaced, and keeps its memory.
        const isDropped = this.ledger.fateOf(updateId) === 'dropped'
        if (this.indexOf(updateId) < 0 && !isDropped)
          this.ledger.fail(`the body of ${updateId} is read after its removal`)
        return Buffer.from(text)
      },
    }
    this.pending.push(update)
    this.ledger.pushed(update)
  }

  remove(updateId: number): void {
    const at = this.indexOf(updateId)
    if (at < 0) return
    const [update] = this.pending.splice(at, 1)
    this.#removals.push({ update: update!, atMs: this.clock.monotonicMs() })
    if (this.#removals.length > 100) this.#removals = this.#recent()
  }

  indexOf(updateId: number): number {
    const at = this.firstAfter(updateId - 1)
    return this.pending[at]?.updateId === updateId ? at : -1
  }

  /** Returns the index of the first update with an id above `updateId`. */
  firstAfter(updateId: number): number {
    const { pending } = this
    let low = 0
    let high = pending.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (pending[middle]!.updateId <= updateId) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Undoes the last removals, which had not reached the disk. */
  crash(): void {
    const recent = this.#recent()
    // Removals are written in order: only the last ones can be lost, never one in between.
    for (const { update } of recent.slice(this.luck.int(0, recent.length))) {
      this.pending.push(update)
      this.ledger.restored(update.updateId)
    }
    this.pending.sort((one, other) => one.updateId - other.updateId)
    this.#removals = []
  }

  #recent(): Removal[] {
    const sinceMs = this.clock.monotonicMs() - this.lagMs
    return this.#removals.filter((removal) => removal.atMs >= sinceMs)
  }
}

/** The queue as one process sees it. */
export class SimulatedQueue implements DeliverySource {
  readonly #stored: StoredUpdates
  readonly #clock: ProcessClock
  isDetached = false
  #holder: UpdateHolder | undefined
  /** Updates that reads in progress have seen. */
  readonly #given = new Set<PendingUpdate>()
  /** The number of reads in progress. */
  reads = 0
  /** When the last read failed, monotonic. */
  failedMs = Number.NEGATIVE_INFINITY

  constructor(stored: StoredUpdates, clock: ProcessClock) {
    this.#stored = stored
    this.#clock = clock
  }

  get pendingCount(): number {
    return this.#stored.pending.length
  }

  get nextId(): number {
    return this.#stored.nextId
  }

  heldBy(holder: UpdateHolder | undefined): void {
    const isTaken = holder !== undefined && this.#holder !== undefined
    if (isTaken) this.#stored.ledger.fail('two dispatchers hold one queue')
    this.#holder = holder
  }

  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly PendingUpdate[] | Promise<readonly PendingUpdate[]> {
    const { luck, trouble } = this.#stored
    if (!luck.chance(trouble.slow)) return this.#page(afterId, limit)
    // The result may contain updates that are removed during the read.
    const early = luck.chance(0.5) ? this.#page(afterId, limit) : undefined
    const fails = luck.chance(trouble.failing)
    for (const update of early ?? []) this.#given.add(update)
    this.reads++
    return new Promise((resolve, reject) => {
      this.#clock.fromOutside(drawMs(luck, trouble.readMs), () => {
        this.reads--
        for (const update of early ?? []) this.#given.delete(update)
        if (fails) {
          this.failedMs = this.#clock.monotonicMs()
          reject(new Error('cannot be read'))
        } else {
          resolve(early ?? this.#page(afterId, limit))
        }
      })
    })
  }

  remove(updates: readonly PendingUpdate[]): void {
    if (this.isDetached) return
    for (const { updateId } of updates) {
      this.#stored.ledger.removed(updateId)
      this.#stored.remove(updateId)
    }
  }

  addDeadLetters(lost: readonly LostUpdate[]): void {
    if (this.isDetached) return
    for (const one of lost) {
      this.#stored.ledger.buried(one)
      this.#stored.remove(one.update.updateId)
    }
  }

  /** drop_pending_updates. It becomes durable with the caller's commit. */
  async drop(to: number): Promise<readonly []> {
    const { pending, ledger, luck } = this.#stored
    if (luck.chance(0.3)) await this.#pause()
    for (const { updateId } of pending.slice(0, this.#stored.firstAfter(to - 1))) {
      this.#stored.remove(updateId)
      ledger.dropped(updateId)
    }
    return []
  }

  async advance(to: number): Promise<void> {
    await this.drop(to)
    await this.#pause()
  }

  /** Removes expired updates that no dispatcher holds. */
  sweep(): void {
    const nowS = this.#clock.nowMs() / 1_000
    this.#holder?.giveUpExpired()
    for (const update of this.#stored.pending.filter((one) => one.expiresAtS <= nowS)) {
      if (this.#holder?.holds(update) === true || this.#given.has(update)) continue
      this.#stored.ledger.swept(update)
      this.#stored.remove(update.updateId)
    }
  }

  detach(): void {
    this.isDetached = true
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.fromOutside(drawMs(this.#stored.luck, 4), resolve)
    })
  }

  #page(afterId: number, limit: number): readonly PendingUpdate[] {
    const { pending, luck } = this.#stored
    const from = this.#stored.firstAfter(afterId)
    // Pages are also cut by their bytes.
    const count = luck.chance(0.5) ? limit : luck.int(1, limit)
    return pending.slice(from, from + count)
  }
}
