/**
 * What the axes of charts say, where their lines are named, and the path of a curve as small as a word. Pure.
 *
 * Durations have a scale on which each step is about ten times the one before: on a level one, half of the updates taking 2 ms and
 * the latest of them an hour are one line at the bottom and one at the top.
 */
import { formatCount, formatMs, formatRate } from './format.ts'

/** What the values of a chart are. */
export type ChartValue = 'count' | 'rate' | 'duration'

/** How the values of a chart are said, on its axis, in its legend and in its table. */
export const chartFormats = {
  count: formatCount,
  rate: formatRate,
  duration: formatMs,
} as const satisfies Readonly<Record<ChartValue, (value: number | null | undefined) => string>>

/** Chosen: times that people have words for. */
const durationStepTexts: ReadonlyMap<number, string> = new Map([
  [1, '1 ms'],
  [10, '10 ms'],
  [100, '100 ms'],
  [1_000, '1 s'],
  [10_000, '10 s'],
  [60_000, '1 min'],
  [600_000, '10 min'],
  [3_600_000, '1 h'],
  [36_000_000, '10 h'],
  [86_400_000, '1 d'],
  [864_000_000, '10 d'],
])
const durationStepsMs = [...durationStepTexts.keys()]

/** Returns what an axis says at one of its steps. */
export function durationStepText(ms: number): string {
  return durationStepTexts.get(ms) ?? formatMs(ms)
}

/** A scale of durations cannot show less. */
export const shortestShownMs = 1

/** Returns the steps of an axis of durations, at least two, between which all values are. */
export function durationSteps(lowMs: number, highMs: number): readonly number[] {
  const first = durationStepsMs.findLastIndex((step) => step <= Math.max(lowMs, shortestShownMs))
  const from = Math.min(first, durationStepsMs.length - 2)
  const last = durationStepsMs.findIndex((step) => step >= highMs)
  const to = last === -1 ? durationStepsMs.length - 1 : Math.max(last, from + 1)
  return durationStepsMs.slice(from, to + 1)
}

/**
 * Returns where the names of lines stand, so that none covers another.
 *
 * @param wanted - the height of the end of each line, from above
 */
export function namePlaces(
  wanted: readonly number[],
  { gap, bottom }: { readonly gap: number; readonly bottom: number },
): readonly number[] {
  const order = wanted.map((_, nth) => nth).toSorted((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0))
  const places = [...wanted]
  let free = 0
  for (const nth of order) {
    places[nth] = Math.max(places[nth] ?? 0, free)
    free = (places[nth] ?? 0) + gap
  }
  free = bottom
  for (const nth of order.toReversed()) {
    places[nth] = Math.min(places[nth] ?? 0, free)
    free = (places[nth] ?? 0) - gap
  }
  return places
}

/** A line of the table of a chart: its time, and a value of each line. */
export interface ChartRow {
  readonly timeS: number
  readonly values: readonly (number | null)[]
}

/** A table has at most so many rows. Chosen: those of a day are quarters of an hour. */
export const chartRowsMax = 96

/**
 * Returns the rows of the table of a chart, the newest first, without times of which nothing is known. If there are too many times, a
 * row stands for several, with the highest value of each line.
 */
export function chartRows(
  times: readonly number[],
  lines: readonly (readonly (number | null)[])[],
): readonly ChartRow[] {
  const size = Math.ceil(times.length / chartRowsMax)
  const rows: ChartRow[] = []
  for (let from = 0; from < times.length; from += size) {
    const values = lines.map((line) => highest(line.slice(from, from + size)))
    const timeS = times[from]
    if (timeS !== undefined && values.some((value) => value !== null)) rows.push({ timeS, values })
  }
  return rows.toReversed()
}

function highest(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : Math.max(...known)
}

/** The size of a small curve in pixels. */
export const sparkWidth = 96
export const sparkHeight = 28

/** Returns the path of a small curve, which begins at the left edge and ends at the right one. One value is a level line. */
export function sparkPath(values: readonly number[]): string {
  const [first] = values
  if (first === undefined) return ''
  const points = values.length === 1 ? [first, first] : values
  const high = Math.max(...points, 1)
  return points
    .map((value, nth) => {
      const x = (nth / (points.length - 1)) * sparkWidth
      const y = sparkHeight - 1 - (value / high) * (sparkHeight - 3)
      return `${nth === 0 ? 'M' : 'L'}${round(x)} ${round(y)}`
    })
    .join(' ')
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10
}
