/**
 * Records what happens to every update and compares it with what the server under test does: the rules of protocol.md §8 about
 * order, expiry, retries and loss. A violation is stored and not thrown, because the code under test may catch what is
 * thrown through it.
 *
 *     pending --2xx--> delivered     pending --given up--> expired, refused     pending --dropped by the bot--> dropped
 *
 * A crash may restore what was removed just before it.
 */
import type { LostUpdate, PendingUpdate } from '../../../src/delivery/delivery-source.ts'
import type { EventClock } from './event-clock.ts'

export type Fate = 'pending' | 'delivered' | 'expired' | 'refused' | 'dropped'

export interface Entry {
  readonly update: PendingUpdate
  fate: Fate
  /** A delivery of it is in progress. */
  isFlying: boolean
  /** Failures with the present dispatcher. */
  failures: number
  /** Monotonic: no attempt may come before `dueFromMs`, and none is due before `dueToMs`. */
  dueFromMs: number
  dueToMs: number
  /** The delay its last response asked for, until the dispatcher has recorded the failure. */
  retryAfterMs: number | undefined
  /** Whether the present delay was asked for. */
  isAskedToWait: boolean
  isAborted: boolean
  isRemoved: boolean
}

/** The bounds of the cap on a retry's delay. */
const capMsMin = 60_000
const capMsMax = 120_000

export class Ledger {
  readonly #clock: EventClock
  readonly #entries = new Map<number, Entry>()
  /** The pending updates of each key, in id order. */
  readonly #keys = new Map<string, Entry[]>()
  /** Keys whose head was swept while they were parked, with the monotonic time until which they are parked. */
  readonly #parked = new Map<string, number>()
  /** How often each kind of event happened. A simulation in which nothing happens proves nothing. */
  readonly tallies = new Map<string, number>()
  pending = 0
  violation: string | undefined
  /** Receives a description of every event, if set. */
  log: ((text: string) => void) | undefined

  constructor(clock: EventClock) {
    this.#clock = clock
  }

  fail(rule: string): void {
    this.log?.(`BROKEN: ${rule}`)
    this.violation ??= rule
  }

  tally(what: string): void {
    this.tallies.set(what, (this.tallies.get(what) ?? 0) + 1)
  }

  pushed(update: PendingUpdate): void {
    const entry: Entry = {
      update,
      fate: 'pending',
      isFlying: false,
      failures: 0,
      dueFromMs: 0,
      dueToMs: this.#parked.get(update.orderingKey) ?? 0,
      retryAfterMs: undefined,
      isAskedToWait: false,
      isAborted: false,
      isRemoved: false,
    }
    this.#entries.set(update.updateId, entry)
    this.#toPending(entry)
    this.log?.(`push ${name(update)} expires ${update.expiresAtS}`)
  }

  /** A new dispatcher knows nothing about earlier failures. */
  beginLife(): void {
    this.#parked.clear()
    for (const entries of this.#keys.values()) {
      for (const entry of entries) {
        if (entry.isFlying)
          this.fail(`${name(entry.update)} still flies as a new dispatcher begins`)
        entry.failures = 0
        entry.dueFromMs = 0
        entry.dueToMs = 0
      }
    }
  }

  /** The oldest pending update of each key. */
  *heads(): Generator<Entry> {
    for (const entries of this.#keys.values()) {
      const head = entries[0]
      if (head !== undefined) yield head
    }
  }

  fateOf(updateId: number): Fate | undefined {
    return this.#entries.get(updateId)?.fate
  }

  sent(updateId: number, mayBeDropped: boolean): void {
    const entry = this.#find(updateId)
    if (entry === undefined) return
    const { update } = entry
    this.tally('sent')
    this.log?.(`send ${name(update)}`)
    const wallMs = this.#clock.wallMs()
    if (update.expiresAtS * 1_000 <= wallMs) this.fail(`${name(update)} sent after its expiry`)
    if (entry.isFlying) this.fail(`${name(update)} sent twice at a time`)
    if (entry.dueFromMs > this.#clock.monotonicMs() + 0.01) {
      this.fail(`${name(update)} sent ${entry.dueFromMs - this.#clock.monotonicMs()} ms too early`)
    }
    entry.isFlying = true
    const isLeft = entry.fate === 'pending' || (entry.fate === 'dropped' && mayBeDropped)
    if (!isLeft) this.fail(`${name(update)} sent although ${entry.fate}`)
    this.#checkOrder(entry, wallMs)
  }

  /** The delivery has ended, whatever its result. */
  landed(updateId: number): void {
    const entry = this.#find(updateId)
    if (entry !== undefined) entry.isFlying = false
  }

  answered(
    updateId: number,
    isSuccess: boolean,
    wish: Pick<Entry, 'retryAfterMs' | 'isAborted'>,
  ): void {
    const entry = this.#find(updateId)
    if (entry === undefined) return
    if (isSuccess) {
      if (entry.fate === 'pending') this.#end(entry, 'delivered')
      return
    }
    entry.retryAfterMs = wish.retryAfterMs
    entry.isAborted = wish.isAborted
  }

  /** The dispatcher records a failure. */
  failed(updateId: number, retryAfterMs: number | undefined): void {
    const entry = this.#find(updateId)
    if (entry === undefined) return
    if (entry.isAborted) this.fail(`${name(entry.update)} is tried again although it was refused`)
    entry.failures++
    this.tally('failed')
    const { failures } = entry
    const backOffMs = failures === 1 ? 0 : 1_000 * 2 ** (failures - 1)
    const nowMs = this.#clock.monotonicMs()
    if (retryAfterMs !== entry.retryAfterMs) {
      this.fail(
        `${name(entry.update)}: Retry-After is ${entry.retryAfterMs}, taken for ${retryAfterMs}`,
      )
    }
    entry.dueFromMs = nowMs + (entry.retryAfterMs ?? Math.min(backOffMs, capMsMin))
    entry.dueToMs = nowMs + (entry.retryAfterMs ?? Math.min(backOffMs, capMsMax))
    entry.isAskedToWait = entry.retryAfterMs !== undefined
    entry.retryAfterMs = undefined
    this.log?.(`failure ${failures} of ${name(entry.update)}, due ${entry.dueToMs}`)
  }

  /** What waits for a retry is due now. */
  retried(isPastRetryAfter: boolean): void {
    const nowMs = this.#clock.monotonicMs()
    for (const entry of this.heads()) {
      if (entry.dueToMs <= nowMs || (entry.isAskedToWait && !isPastRetryAfter)) continue
      this.tally('retried at once')
      entry.dueFromMs = nowMs
      entry.dueToMs = nowMs
    }
  }

  /** Removed from the queue as delivered. */
  removed(updateId: number): void {
    const entry = this.#find(updateId)
    if (entry === undefined) return
    const isRight = entry.fate === 'delivered' || entry.fate === 'dropped'
    if (!isRight) this.fail(`${updateId} removed as delivered although ${entry.fate}`)
    if (entry.isRemoved) this.fail(`${updateId} removed twice`)
    entry.isRemoved = true
  }

  buried({ update, reason, attempts, lastError }: LostUpdate): void {
    const entry = this.#find(update.updateId)
    if (entry === undefined) return
    this.log?.(`addDeadLetters ${name(update)}: ${reason} after ${attempts}`)
    if (entry.fate === 'delivered') this.fail(`${name(update)} buried after its delivery`)
    if (entry.fate !== 'pending') return
    // The refusing response is an attempt, too.
    const expected = entry.failures + (reason === 'refused' ? 1 : 0)
    if (attempts !== expected) {
      this.fail(`${name(update)} buried with ${attempts} attempts instead of ${expected}`)
    }
    if ((lastError === undefined) !== (expected === 0)) {
      this.fail(`${name(update)} buried after ${expected} attempts with the error ${lastError}`)
    }
    if (reason === 'refused') {
      if (!entry.isAborted) this.fail(`${name(update)} refused by nobody`)
    } else {
      const waitMs = Math.max(entry.dueToMs - this.#clock.monotonicMs(), 0)
      if (this.#clock.wallMs() + waitMs < update.expiresAtS * 1_000) {
        this.fail(`${name(update)} buried before its expiry`)
      }
      if (entry.isAborted) this.fail(`${name(update)} expired although it was refused`)
    }
    this.#end(entry, reason)
  }

  /** Removed by the sweep after its expiry. */
  swept(update: PendingUpdate): void {
    const entry = this.#find(update.updateId)
    if (entry?.fate !== 'pending') return
    this.tally('swept')
    this.log?.(`sweep ${name(update)}`)
    if (entry.isFlying) this.fail(`${name(update)} swept in flight`)
    this.#end(entry, 'expired')
    // Its key was parked and learns only when it is due that its head is gone. Only a jump of the clock causes such a
    // wait.
    const { orderingKey } = update
    const parkedToMs = Math.max(this.#parked.get(orderingKey) ?? 0, entry.dueToMs)
    this.#parked.set(orderingKey, parkedToMs)
    const [next] = this.#keys.get(orderingKey) ?? []
    if (next !== undefined) next.dueToMs = Math.max(next.dueToMs, parkedToMs)
  }

  dropped(updateId: number): void {
    const entry = this.#find(updateId)
    if (entry?.fate === 'pending') this.#end(entry, 'dropped')
  }

  /** A crash has undone its removal. */
  restored(updateId: number): void {
    const entry = this.#find(updateId)
    if (entry === undefined || entry.fate === 'pending') return
    this.log?.(`crash brings ${name(entry.update)} back`)
    this.tally('restored')
    entry.isAborted = false
    entry.isRemoved = false
    this.#toPending(entry)
  }

  #find(updateId: number): Entry | undefined {
    const entry = this.#entries.get(updateId)
    if (entry === undefined) this.fail(`${updateId} was never pushed`)
    return entry
  }

  #checkOrder(entry: Entry, wallMs: number): void {
    const { update } = entry
    for (const earlier of this.#keys.get(update.orderingKey) ?? []) {
      if (earlier.isFlying && earlier !== entry) {
        this.fail(`${name(update)} sent while ${name(earlier.update)} of its key is in flight`)
      }
      if (earlier.update.updateId >= update.updateId) continue
      // An expired update may be overtaken in the turn in which it is given up.
      if (earlier.update.expiresAtS * 1_000 > wallMs) {
        this.fail(`${name(update)} sent before ${name(earlier.update)}`)
      }
    }
  }

  #toPending(entry: Entry): void {
    entry.fate = 'pending'
    this.pending++
    const { orderingKey, updateId } = entry.update
    const entries = this.#keys.get(orderingKey)
    if (entries === undefined) {
      this.#keys.set(orderingKey, [entry])
      return
    }
    let at = entries.length
    while (at > 0 && entries[at - 1]!.update.updateId > updateId) at--
    entries.splice(at, 0, entry)
  }

  #end(entry: Entry, fate: Fate): void {
    entry.fate = fate
    this.pending--
    this.tally(fate)
    const { orderingKey } = entry.update
    const entries = this.#keys.get(orderingKey) ?? []
    entries.splice(entries.indexOf(entry), 1)
    if (entries.length === 0) this.#keys.delete(orderingKey)
  }
}

export function name({ updateId, orderingKey }: PendingUpdate): string {
  return `${updateId}/${orderingKey}`
}
