/** Two charts of the last hour of a webhook: how its attempts ended, and how long its responses took. */
import { formatCount } from './format.ts'
import { LineChart } from './line-chart.ts'
import type { HistoryShape } from './shapes.ts'

/** In the order of the colors: green is for what was delivered only. */
const outcomes = [
  'delivered',
  'rejected',
  'timed_out',
  'connection_failed',
  'tls_failed',
  'refused_for_good',
  'expired',
]
const hourS = 3_600
const emptyText = 'No attempts since the worker of this bot has started, or for an hour.'

export class HistoryPanel {
  readonly outcomes = new LineChart({
    title: 'Outcomes per minute, last hour',
    lines: outcomes.map((outcome, nth) => ({ name: outcome.replaceAll('_', ' '), color: nth + 1 })),
    spanS: hourS,
    emptyText,
    formatValue: formatCount,
  })
  readonly latency = new LineChart({
    title: 'Response time, last hour',
    lines: [
      { name: 'mean', color: 5 },
      { name: 'longest', color: 3 },
    ],
    spanS: hourS,
    emptyText,
    formatValue: formatMs,
  })

  show(history: HistoryShape): void {
    const times = history.mean_ms.map((_, minute) => history.from + minute * 60)
    this.#showOutcomes(times, history)
    const longest = Math.max(0, ...history.max_ms.map((ms) => ms ?? 0))
    const mean = history.mean_ms.findLast((ms) => ms !== null)
    this.latency.show({
      times,
      values: [history.mean_ms, history.max_ms],
      notes: [`${formatMs(mean)} now`, `${formatMs(longest)} at most`],
      sentence: `the longest response took ${formatMs(longest)}`,
    })
  }

  #showOutcomes(times: readonly number[], history: HistoryShape): void {
    const counts = outcomes.map((outcome) => history.outcomes[outcome] ?? [])
    const sums = counts.map((minutes) => minutes.reduce((sum, count) => sum + count, 0))
    const said = outcomes.flatMap((outcome, nth) =>
      sums[nth] === 0 ? [] : [`${formatCount(sums[nth])} ${outcome.replaceAll('_', ' ')}`],
    )
    this.outcomes.show({
      times,
      // A line that is always zero hides others.
      values: counts.map((minutes, nth) => (sums[nth] === 0 ? minutes.map(() => null) : minutes)),
      notes: sums.map((sum) => formatCount(sum)),
      sentence: said.length === 0 ? 'no attempts' : said.join(', '),
    })
  }

  close(): void {
    this.outcomes.close()
    this.latency.close()
  }
}

function formatMs(ms: number | null | undefined): string {
  return typeof ms === 'number' ? `${formatCount(ms)} ms` : '–'
}
