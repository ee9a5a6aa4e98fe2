/** What the charts of the last hour of a queue have in common: their times, and where they begin. Pure. */
import type { HistoryShape } from '../frame/shapes.ts'

/** A chart of the last hour begins with the first minute in which something happened. Chosen: of less than ten minutes, a line is a dot. */
export const hourSpan = { spanS: 3_600, spanMinS: 600 } as const

export interface HourTimes {
  /** The beginning of each minute in Unix seconds. */
  readonly times: readonly number[]
  /** That of the first minute in which something happened; undefined if nothing did. */
  readonly beginS: number | undefined
}

/** Returns the same for all charts of a queue, so that what stands below each other is of the same time. */
export function hourTimes(history: HistoryShape): HourTimes {
  const { from, outcomes, mean_ms: minutes, fetched = [], confirmed = [] } = history
  const times = minutes.map((_, minute) => from + minute * 60)
  const counts = [...Object.values(outcomes), fetched, confirmed]
  const beginS = times.find((_, minute) => counts.some((line) => (line[minute] ?? 0) > 0))
  return { times, beginS }
}
