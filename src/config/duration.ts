/** Durations, as people give them to commands: `90`, `90s`, `10m`, `2h`, `1d`. */
import { type Kind, refused } from './config-values.ts'

const secondMs = 1_000

/** By the words and letters of units: those that commands print, too. */
const unitsMs: ReadonlyMap<string, number> = new Map([
  ['s', secondMs],
  ['m', 60_000],
  ['min', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Returns the milliseconds of a whole number with a unit; undefined for any other text. */
export function durationMs(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,9}) ?(s|m|min|h|d)$/.exec(text) ?? []
  const unitMs = unitsMs.get(unit)
  return unitMs === undefined ? undefined : Number(digits) * unitMs
}

/** Returns a duration in its largest whole unit, such as `7d`. */
export function durationText(seconds: number): string {
  const units = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'm'],
  ] as const
  const [unit, name] = units.find(([each]) => seconds > 0 && seconds % each === 0) ?? [1, 's']
  return `${seconds / unit}${name}`
}

/**
 * A duration in whole seconds.
 *
 * @param min - and the most, in seconds
 */
export function span(min: number, max: number): Kind<number> {
  return {
    expected: `seconds, or a duration such as 10m, 2h or 1d, from ${durationText(min)} to ${durationText(max)}`,
    placeholder: 'DURATION',
    parse(text) {
      const ms = /^\d{1,12}$/.test(text) ? Number(text) * secondMs : durationMs(text)
      const seconds = (ms ?? -1) / secondMs
      return seconds >= min && seconds <= max ? seconds : refused
    },
  }
}

/**
 * A duration that is converted to milliseconds.
 *
 * @param maxMs - the longest
 */
export function duration(maxMs: number): Kind<number> {
  const kind = span(0, maxMs / secondMs)
  return {
    ...kind,
    parse(text) {
      const value = kind.parse(text)
      return value === refused ? refused : value * secondMs
    },
  }
}
