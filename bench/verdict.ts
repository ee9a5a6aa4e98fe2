/** Whether a case met its targets, and the figure that a target or a chart uses. */
import { unreachable } from '../src/kit/errors.ts'
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
    case 'figure':
      return figured(target, row)
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
      return scaled(target, row)
    case 'cpuGrowth':
      return {
        want: `${row.name}: at most ${target.max} x our CPU an operation`,
        got: (1 / cpuRatio).toFixed(2),
        isMet: 1 / cpuRatio <= target.max,
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

function scaled(
  { times, min, isByCpu = false }: Extract<Target, { kind: 'scaling' }>,
  { name, rateRatio, cpuRatio }: Row,
): Verdict {
  const byCpu = times / cpuRatio
  return {
    want: `at least ${min} x the rate of ${name}${isByCpu ? ' by CPU an operation' : ''}`,
    got: `${rateRatio.toFixed(2)}; ${byCpu.toFixed(2)} by CPU an operation`,
    isMet: (isByCpu ? byCpu : rateRatio) >= min,
  }
}

function figured(
  { figure, max, of }: Extract<Target, { kind: 'figure' }>,
  { figures }: Row,
): Verdict {
  const value = figures[figure] ?? Number.NaN
  return {
    want: `${of === undefined ? '' : `${of}: `}${figure} at most ${max}`,
    got: value.toFixed(2),
    isMet: value <= max,
  }
}
