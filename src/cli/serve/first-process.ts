/**
 * The first process of a container, process 1, has no default action for signals: without a listener it would ignore a
 * SIGTERM while the server starts, for example while it waits for its database. Nothing is served yet, so it ends at once.
 */
const endSignals = { SIGTERM: 143, SIGINT: 130 } as const

/** Returns a function that takes this back, for when the server obeys signals itself. Other processes need nothing. */
export function endFirstProcessAtSignal(pid = process.pid): () => void {
  if (pid !== 1) return () => undefined
  const listeners = Object.entries(endSignals).map(
    ([signal, code]) => [signal, () => process.exit(code)] as const,
  )
  for (const [signal, listener] of listeners) process.on(signal, listener)
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
  }
}
