/** Whether a case met its targets, and the figure that a target or a chart uses. */
import { unreachable } from '../src/errors.ts'
import type { CaseResult, Row } from './case-result.ts'
import type { Charted, Target } from './contestant.ts'

export interface Verdict {
  readonly want: string
  readonly got: string
  readonly isMet: boolean
}

/** Undefined if the yardstick is missing. */
export function verdictOf(target: Target, { rows }: Pick<CaseResult, 'rows'>): Verdict | undefined {
  const name = 'against' in target ? target.against : 'of' in target ? target.of : undefined
  const row = name === undefined ? rows[0] : rowNamed(rows, name)
  return row === undefined ? undefined : judged(target, row, rows[0])
}

/** Undefined if it was not measured. */
export function chartedValue(charted: Charted, rows: readonly Row[]): number | undefined {
  if (charted.kind === 'figure') return rows[0]?.figures[charted.figure]
  return rowNamed(rows, charted.against)?.[charted.kind]
}

/** Returns what a target demands of that figure. */
export function chartedTarget(charted: Charted, targets: readonly Target[]): number | undefined {
  for (const target of targets) {
    if (charted.kind === 'figure') {
      if (isOfOurs(target, charted.figure)) return target.max
    } else if ('against' in target && target.against === charted.against) {
      const isOfRate = target.kind === 'rateRatio' || target.kind === 'scaling'
      if (charted.kind === 'rateRatio' && isOfRate) return target.min
      if (charted.kind === 'cpuRatio' && target.kind === 'cpuRatio') return target.max
    }
  }
  return undefined
}

function isOfOurs(target: Target, figure: string): target is Extract<Target, { kind: 'figure' }> {
  return target.kind === 'figure' && target.of === undefined && target.figure === figure
}

function rowNamed(rows: readonly Row[], name: string): Row | undefined {
  return rows.find((row) => row.name === name)
}

function judged(target: Target, row: Row, ours: Row | undefined): Verdict {
  const { operationsPerSecond, rateRatio, cpuRatio } = row
  switch (target.kind) {
    case 'rate':
      return {
        want: `at least ${target.min.toLocaleString('en')} a second`,
        got: Math.round(operationsPerSecond).toLocaleString('en'),
        isMet: operationsPerSecond >= target.min,
      }
    case 'rateRatio':
      return {
        want: `at least ${target.min} of the speed of ${row.name}`,
        got: rateRatio.toFixed(2),
        isMet: rateRatio >= target.min,
      }
    case 'figure': {
      const value = row.figures[target.figure] ?? Number.NaN
      return {
        want: `${target.of === undefined ? '' : `${target.of}: `}${target.figure} at most ${target.max}`,
        got: value.toFixed(2),
        isMet: value <= target.max,
      }
    }
    case 'figureRatio': {
      const { figure, max } = target
      const value = (ours?.figures[figure] ?? Number.NaN) / (row.figures[figure] ?? Number.NaN)
      return {
        want: `${figure} at most ${max} x that of ${row.name}`,
        got: value.toFixed(2),
        isMet: value <= max,
      }
    }
    case 'scaling':
      return {
        want: `at least ${target.min} x the rate of ${row.name}`,
        got: `${rateRatio.toFixed(2)}; ${(target.times / cpuRatio).toFixed(2)} by CPU an operation`,
        isMet: rateRatio >= target.min,
      }
    case 'cpuRatio':
      return {
        want: `at most ${target.max} x the CPU of ${row.name} an operation`,
        got: cpuRatio.toFixed(2),
        isMet: cpuRatio <= target.max,
      }
    default:
      return unreachable(target)
  }
}
