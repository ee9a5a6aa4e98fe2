/**
 * Calls `send` at a steady rate for a while: every millisecond, for what has become due by then. What is due does not
 * depend on responses, so a slow contestant gets the same load as a fast one. Resolves with the number sent.
 */
export function steadyTicks(
  pace: { readonly ratePerSecond: number; readonly durationMs: number },
  send: (count: number) => void,
): Promise<number> {
  const all = Math.round((pace.ratePerSecond * pace.durationMs) / 1_000)
  const startMs = performance.now()
  let sent = 0
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const dueByNow = ((performance.now() - startMs) * pace.ratePerSecond) / 1_000
      const count = Math.min(Math.floor(dueByNow), all) - sent
      if (count > 0) send(count)
      sent += count
      if (sent < all) return
      clearInterval(timer)
      resolve(sent)
    }, 1)
  })
}
