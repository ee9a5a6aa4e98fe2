/** Resolves when the condition is true; checks it every 10 ms. */
export async function until(isTrue: () => Promise<boolean>, msMax: number): Promise<void> {
  const endMs = performance.now() + msMax
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`still waiting after ${msMax} ms`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
