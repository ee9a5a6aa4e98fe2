/**
 * Reads the text of /metrics into sums by name: the samples of a metric with labels are added up.
 *
 * @param text - Prometheus' text format
 * @returns the value of each metric, without the prefix `postbote_`
 */
export function readMetricsText(text: string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, value] = /^postbote_(\w+)(?:\{.*\})? (\S+)/.exec(line) ?? []
    if (name === undefined || value === undefined) continue
    sums.set(name, (sums.get(name) ?? 0) + Number(value))
  }
  return sums
}
