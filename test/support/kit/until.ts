const pauseMsMin = 10
const pauseMsMax = 50
/** Far longer than anything takes, on a machine that is busy with many other tests, too. */
const limitMsMax = 60_000

/**
 * Waits until the condition holds. It is checked every 10 ms at first, and every 50 ms once it has not held for long: many
 * conditions ask a server or a database, and tests beside this one need the CPU.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  limitMs = limitMsMax,
): Promise<void> {
  const startMs = performance.now()
  while (!(await condition())) {
    const waitedMs = performance.now() - startMs
    if (waitedMs > limitMs) throw new Error(`not so within ${limitMs} ms: ${condition.toString()}`)
    const pauseMs = Math.min(pauseMsMin + waitedMs / 20, pauseMsMax)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
