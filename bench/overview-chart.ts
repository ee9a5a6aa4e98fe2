/** The chart that shows a reader at a glance what the server costs: its CPU time beside that of bare programs. */
import type { CaseResult } from './case-result.ts'
import { barChart } from './chart.ts'

/** What a bar is called, by case, and the bare program whose CPU time is 1. */
const bars: Readonly<Record<string, { readonly label: string; readonly against: string }>> = {
  ingest: { label: 'push in a stream', against: 'bare leveldown' },
  push: { label: 'single push', against: 'bare node:http and leveldown' },
  'poll-empty': { label: 'empty poll', against: 'bare node:http' },
  'poll-100': { label: 'poll of 100 updates', against: 'bare node:http' },
  webhook: { label: 'webhook delivery', against: 'bare undici' },
}

/** Returns the chart as SVG text; undefined unless all of its cases were measured. */
export function overviewChart(results: readonly CaseResult[]): string | undefined {
  const shown = Object.entries(bars).flatMap(([name, { label, against }]) => {
    const rows = results.find((result) => result.name === name)?.rows ?? []
    const row = rows.find((each) => each.name === against)
    return row === undefined ? [] : [{ label, value: row.cpuRatio, target: undefined }]
  })
  if (shown.length < Object.keys(bars).length) return undefined
  return barChart({
    title: 'CPU an operation; a bare program that stores or sends the same = 1',
    isLowerBetter: true,
    unit: 'x',
    bars: shown,
  })
}
