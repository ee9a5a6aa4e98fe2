/**
 * How much time of a worker's event loop each debtor has used up: a bot, or a client address. Pure.
 *
 *     debt in ms
 *       ^
 *       |      /|   a charge
 *       |     / |\
 *  burst|----/--|-\--------   over it the debtor has to wait until its debt has come down to this line
 *       |   /     \
 *       +----------\------->  it comes down by `loopBudgetShare` of the time that passes, to nothing
 *
 * What a request usually costs is not charged (budget-gate.ts), so that nobody is over the budget as long as nobody does
 * anything expensive: one comparison tells.
 */
import { loopBudgetBurstMs, loopBudgetShare, loopDebtMsMax, loopDebtorsMax } from '../limits.ts'

interface Debt {
  ms: number
  atMs: number
}

export class LoopBudget {
  readonly #debts = new Map<string, Debt>()

  /** Until then somebody may have to wait. */
  #overUntilMs = -Infinity

  /** Whether anybody has to wait: as long as not, nothing else need be asked. */
  isAnyoneOver(nowMs: number): boolean {
    return nowMs < this.#overUntilMs
  }

  get debtors(): number {
    return this.#debts.size
  }

  /**
   * Adds what a debtor has used up.
   *
   * @param debtor Any name; each has a budget of its own.
   * @param costMs Time of the event loop.
   * @param nowMs A monotonic clock's time, as everywhere here.
   */
  charge(debtor: string, costMs: number, nowMs: number): void {
    const leftMs = this.#leftMs(debtor, nowMs)
    if (leftMs === 0) this.#makeRoom(nowMs)
    this.#debts.set(debtor, { ms: Math.min(leftMs + costMs, loopDebtMsMax), atMs: nowMs })
    const waitMs = this.waitMs(debtor, nowMs)
    if (waitMs > 0) this.#overUntilMs = Math.max(this.#overUntilMs, nowMs + waitMs)
  }

  /**
   * How long a debtor has to wait before its next request is looked at.
   *
   * @returns Milliseconds, 0 where it is within its budget.
   */
  waitMs(debtor: string, nowMs: number): number {
    const overMs = this.#leftMs(debtor, nowMs) - loopBudgetBurstMs
    return overMs > 0 ? overMs / loopBudgetShare : 0
  }

  /** Forgets a debtor that has paid. */
  #leftMs(debtor: string, nowMs: number): number {
    const debt = this.#debts.get(debtor)
    if (debt === undefined) return 0
    const leftMs = remainingMs(debt, nowMs)
    if (leftMs === 0) this.#debts.delete(debtor)
    return leftMs
  }

  /** Those that have paid go, and else whoever was the first to come into debt. */
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
