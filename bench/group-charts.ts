/** The charts of a group: one for each kind of figure that its cases show. */
import { unreachable } from '../src/kit/errors.ts'
import type { CaseResult } from './case-result.ts'
import { type Bar, barChart } from './chart.ts'
import type { Charted } from './contestant.ts'
import { chartedTarget, chartedValue } from './verdict.ts'

export interface GroupChart {
  /** Distinguishes the chart from others of the group. */
  readonly name: string
  readonly title: string
  readonly svg: string
}

interface ChartedBars {
  readonly charted: Charted
  readonly bars: Bar[]
}

export function groupCharts(
  group: { readonly name: string; readonly title: string },
  results: readonly CaseResult[],
): GroupChart[] {
  const byFigure = new Map<string, ChartedBars>()
  for (const { name, charted, rows, targets } of results) {
    const value = charted === undefined ? undefined : chartedValue(charted, rows)
    if (charted === undefined || value === undefined || !Number.isFinite(value)) continue
    const title = figureTitle(charted)
    const same = byFigure.get(title) ?? { charted, bars: [] }
    same.bars.push({ label: name, value, target: chartedTarget(charted, targets) })
    byFigure.set(title, same)
  }
  return [...byFigure].map(([figure, { charted, bars }], index) => {
    const title = `${group.title}: ${figure}`
    return {
      name: index === 0 ? group.name : `${group.name}-${index + 1}`,
      title,
      svg: barChart({
        title,
        isLowerBetter: charted.kind !== 'rateRatio',
        unit: charted.kind === 'figure' ? '' : 'x',
        bars,
      }),
    }
  })
}

function figureTitle(charted: Charted): string {
  switch (charted.kind) {
    case 'rateRatio':
      return `speed, ${charted.against} = 1`
    case 'cpuRatio':
      return `CPU an operation, ${charted.against} = 1`
    case 'figure':
      return charted.figure
    default:
      return unreachable(charted)
  }
}
