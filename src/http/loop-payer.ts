/**
 * Who pays for time of the event loop (loop-budget.ts). Work that takes several turns gets its payer, and each of its parts waits
 * for `turn` and is charged, so that it takes no more time than its payer may have, however many of its kind there are.
 */
export interface LoopPayer {
  /**
   * Returns undefined if the next part of the work may begin now; otherwise a promise that resolves when it may, and rejects with
   * TOO_MANY_REQUESTS if too much of this payer waits, or nobody waits for the result any more.
   */
  turn(): Promise<void> | undefined
  /** @param costMs - time of the event loop, beyond what is free for each call */
  charge(costMs: number): void
  /** @returns the start of a measurement, for `spent` */
  begin(): number
  /** Charges what one turn of the event loop has cost since `begin`, beyond what is free for each call. */
  spent(sinceMs: number): void
}
