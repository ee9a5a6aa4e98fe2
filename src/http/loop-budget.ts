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
import { loopBudgetBurstMs, loopBudgetShare, loopDebtMsMax, loopDebtorsMax } from './limits.ts'

interface Debt {
  ms: number
  atMs: number
}

/** Counts the debts of all debtors. All times are those of one monotonic clock. */
export class LoopBudget {
  readonly #debts = new Map<string, Debt>()

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
    return this.#debts.size
  }

  /**
   * Adds to the debt of a debtor, up to `loopDebtMsMax`.
   *
   * @param debtor - any name; each has its own budget
   * @param costMs - time of the event loop
   * @param nowMs - monotonic time
   */
  charge(debtor: string, costMs: number, nowMs: number): void {
    const leftMs = this.#leftMs(debtor, nowMs)
    if (leftMs === 0) this.#makeRoom(nowMs)
    this.#debts.set(debtor, { ms: Math.min(leftMs + costMs, loopDebtMsMax), atMs: nowMs })
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
    const overMs = this.#leftMs(debtor, nowMs) - loopBudgetBurstMs
    return overMs > 0 ? overMs / loopBudgetShare : 0
  }

  /** Returns the rest of the debt; forgets a debtor without any. */
  #leftMs(debtor: string, nowMs: number): number {
    const debt = this.#debts.get(debtor)
    if (debt === undefined) return 0
    const leftMs = remainingMs(debt, nowMs)
    if (leftMs === 0) this.#debts.delete(debtor)
    return leftMs
  }

  /** Removes debtors without a debt, or else the one that came into debt first. */
  #makeRoom(nowMs: number): void {
    if (this.#debts.size < loopDebtorsMax) return
    for (const [debtor, debt] of this.#debts) {
      if (remainingMs(debt, nowMs) === 0) this.#debts.delete(debtor)
    }
    if (this.#debts.size < loopDebtorsMax) return
    const [first] = this.#debts.keys()
    if (first !== undefined) this.#debts.delete(first)
  }
}

function remainingMs({ ms, atMs }: Debt, nowMs: number): number {
  return Math.max(0, ms - (nowMs - atMs) * loopBudgetShare)
}
