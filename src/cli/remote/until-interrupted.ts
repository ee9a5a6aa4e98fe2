/** Runs work that lasts until SIGINT (Ctrl+C), or until nobody reads its output any more, such as after the end of a pipe. */
export async function untilInterrupted(
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ending = new AbortController()
  const end = (): void => ending.abort()
  process.once('SIGINT', end)
  process.stdout.once('error', end)
  try {
    await work(ending.signal)
  } finally {
    process.off('SIGINT', end)
    process.stdout.off('error', end)
  }
}
