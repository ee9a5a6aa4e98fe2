/** Waits until the condition holds, checking it every 10 ms. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > endMs)
      throw new Error(`not so within ${limitMs} ms: ${condition.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The same for tests in which all frameworks start at the same time, on any machine. */
export function untilInTheCrowd(condition: () => boolean | Promise<boolean>): Promise<void> {
  return until(condition, 60_000)
}
