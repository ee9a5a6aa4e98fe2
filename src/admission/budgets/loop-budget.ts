/**
 * How much time of a worker's event loop each debtor has used up. A debtor is a bot or a client address. Pure.
 *
 *     debt in ms
 *       ^
 *       |      /|   a charge
 *       |     / |\
 *  burst|----/--|-\--------   above it the debtor waits until its debt has come down to this line
 *       |   /     \
 *       +----------\------->  it comes down by `loopBudgetShare` of the time that passes, to zero
 *
 * The cost of a usual request is not charged (budget-gate.ts), so no debtor is over the budget unless one does something
 * expensive: a single comparison checks that.
 */
import assert from 'node:assert/strict'
import { fullAfter, lackMs, type TokenBucket } from '../../kit/token-bucket.ts'

/**
 * A bot or a client address may use this share of a worker's time for work beyond usual calls, so that nine others can do
 * the same.
 */
export const loopBudgetShare = 1 / 10
/** A bot or a client address may use this much time without a wait: five bodies of the most expensive kind. */
export const loopBudgetBurstMs = 100
/** As times in which the debt comes down. */
const burstMs = loopBudgetBurstMs / loopBudgetShare
/** A debt is at most this high, so that it is paid after ten seconds whatever was done. */
export const loopDebtMsMax = loopBudgetBurstMs + 10_000 * loopBudgetShare
const debtMsMax = loopDebtMsMax / loopBudgetShare

/** This many debtors are remembered, which takes 2 MB. */
export const loopDebtorsMax = 10_000

/** Counts the debts of all debtors. All times are those of one monotonic clock. */
export class LoopBudget {
  /** When each debtor will have no debt (kit/token-bucket.ts). */
  readonly #freeAtMs = new Map<string, TokenBucket>()

  /** Until this time a debtor may have to wait. */
  #overUntilMs = -Infinity

  /**
   * Returns whether any debtor may have to wait. If not, no other check is needed.
   *
   * @param nowMs - monotonic time
   */
  isAnyoneOver(nowMs: number): boolean {
    return nowMs < this.#overUntilMs
  }

  /** The number of debtors that are remembered, at most `loopDebtorsMax`. */
  get debtors(): number {
    return this.#freeAtMs.size
  }

  /**
   * Adds to the debt of a debtor, up to `loopDebtMsMax`.
   *
   * @param debtor - any name; each has its own budget
   * @param costMs - time of the event loop
   * @param nowMs - monotonic time
   */
  charge(debtor: string, costMs: number, nowMs: number): void {
    assert(costMs >= 0, 'no charge is a gift')
    const before = this.#freeAt(debtor, nowMs)
    if (before === undefined) this.#makeRoom(nowMs)
    const freeAtMs = fullAfter(before ?? nowMs, nowMs, costMs / loopBudgetShare)
    this.#freeAtMs.set(debtor, Math.min(freeAtMs, nowMs + debtMsMax))
    const waitMs = this.waitMs(debtor, nowMs)
    if (waitMs > 0) this.#overUntilMs = Math.max(this.#overUntilMs, nowMs + waitMs)
  }

  /**
   * Returns how long a debtor must wait before its next request is handled.
   *
   * @param debtor - the name that `charge` got
   * @param nowMs - monotonic time
   * @returns milliseconds; 0 if it is within its budget
   */
  waitMs(debtor: string, nowMs: number): number {
    return lackMs(this.#freeAt(debtor, nowMs) ?? nowMs, nowMs, burstMs)
  }

  /** Returns undefined for a debtor without a debt, and forgets it. */
  #freeAt(debtor: string, nowMs: number): number | undefined {
    const freeAtMs = this.#freeAtMs.get(debtor)
    if (freeAtMs === undefined || freeAtMs > nowMs) return freeAtMs
    this.#freeAtMs.delete(debtor)
    return undefined
  }

  /** Removes debtors without a debt, or else the one that came into debt first. */
  #makeRoom(nowMs: number): void {
    if (this.#freeAtMs.size < loopDebtorsMax) return
    for (const debtor of this.#freeAtMs.keys()) this.#freeAt(debtor, nowMs)
    if (this.#freeAtMs.size < loopDebtorsMax) return
    const [first] = this.#freeAtMs.keys()
    if (first !== undefined) this.#freeAtMs.delete(first)
  }
}
