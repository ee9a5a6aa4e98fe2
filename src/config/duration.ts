/** Durations, as people give them to commands: `90`, `90s`, `4.5s`, `10m`, `2h`, `1d`. Without a unit, they are seconds. */
import { choiceOf } from '../kit/text/counted.ts'
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

/** Returns the milliseconds of a number with a unit; undefined for any other text. */
export function durationMs(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,12}(?:\.\d{1,9})?) ?(s|m|min|h|d)$/.exec(text) ?? []
  const unitMs = unitsMs.get(unit)
  return unitMs === undefined ? undefined : Math.round(Number(digits) * unitMs)
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

/** Those within the bounds of a kind say how its values are written. */
const examplesS = [30, 600, 7_200, 604_800]

interface Bounds {
  readonly min: number
  readonly max: number
  /** What the bounds and the values count. */
  readonly unitMs: number
}

function durationKind({ min, max, unitMs }: Bounds): Kind<number> {
  const valueOf = (text: string): number =>
    (durationMs(/^[\d.]+$/.test(text) ? `${text}s` : text) ?? -1) / unitMs
  const textOf = (value: number): string => durationText((value * unitMs) / secondMs)
  const examples = examplesS
    .map((seconds) => (seconds * secondMs) / unitMs)
    .filter((value) => value >= min && value <= max)
    .map(textOf)
  const such = examples.length === 0 ? '' : `, such as ${choiceOf(examples)}`
  return {
    expected: `a duration from ${textOf(min)} to ${textOf(max)}${such}`,
    placeholder: 'DURATION',
    parse(text) {
      const value = valueOf(text)
      return Number.isInteger(value) && value >= min && value <= max ? value : refused
    },
    shortest: (text) => textOf(valueOf(text)),
  }
}

/**
 * A duration in whole seconds.
 *
 * @param min - and the most, in seconds
 */
export function span(min: number, max: number): Kind<number> {
  return durationKind({ min, max, unitMs: secondMs })
}

/** A duration in milliseconds. */
export function duration({
  minMs = 0,
  maxMs,
}: {
  readonly minMs?: number
  readonly maxMs: number
}): Kind<number> {
  return durationKind({ min: minMs, max: maxMs, unitMs: 1 })
}
