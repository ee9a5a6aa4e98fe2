/** Charts of the last hour of a webhook: how its attempts ended, how long its responses took, and how late updates were. */
import { element } from '../elements/element.ts'
import { formatCount, formatMs, formatTime } from '../elements/format.ts'
import { lineChart, type LineChartData } from '../elements/line-chart.ts'
import { hourSpan, type HourTimes, hourTimes } from './hour-times.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import type { HistoryShape } from '../frame/shapes.ts'

/** How attempts end, with their names and colors. */
const outcomeLines = {
  delivered: { name: 'delivered', color: 'delivered' },
  rejected: { name: 'error status', color: 'failed' },
  timed_out: { name: 'timed out', color: 'timed-out' },
  connection_failed: { name: 'connection failed', color: 'connection-failed' },
  tls_failed: { name: 'TLS failed', color: 'tls-failed' },
  refused_for_good: { name: 'refused for good', color: 'refused' },
  expired: { name: 'expired', color: 'expired' },
} as const
const outcomes = Object.entries(outcomeLines).map(([outcome, { name }]) => ({ outcome, name }))
const shared = {
  ...hourSpan,
  emptyText: 'No attempts since the worker of this bot has started, or for an hour.',
}

export function historyPanel(context: PageContext): PagePart<HistoryShape> {
  const counts = lineChart(context, {
    ...shared,
    title: 'Outcomes per minute, last hour',
    lines: Object.values(outcomeLines),
    values: 'count',
  })
  const latency = lineChart(context, {
    ...shared,
    title: 'Response time, last hour',
    lines: [
      { name: 'mean', color: 'p50' },
      { name: 'longest', color: 'p99' },
    ],
    values: 'duration',
  })
  const delay = lineChart(context, {
    ...shared,
    title: 'From push to delivery, last hour',
    emptyText: 'Nothing was delivered in the last hour.',
    lines: [
      { name: 'p50', color: 'p50' },
      { name: 'p99', color: 'p99' },
    ],
    values: 'duration',
  })
  const show = (history: HistoryShape): void => {
    const times = hourTimes(history)
    counts.show({ ...times, ...countsOf(history) })
    latency.show({ ...times, ...latencyOf(history) })
    delay.show({ ...times, ...delayOf(history) })
  }
  return { root: element('div', { class: 'row' }, counts.root, latency.root, delay.root), show }
}

/** What a chart shows at the times that all of them have. */
type ShownLines = Omit<LineChartData, keyof HourTimes>

function countsOf(history: HistoryShape): ShownLines {
  const counts = outcomes.map(({ outcome }) => history.outcomes[outcome] ?? [])
  const sums = counts.map((minutes) => minutes.reduce((sum, count) => sum + count, 0))
  const sentences = outcomes.flatMap(({ name }, nth) =>
    sums[nth] === 0 ? [] : [`${formatCount(sums[nth])} ${name}`],
  )
  return {
    // A line that is always zero hides others.
    values: counts.map((minutes, nth) => (sums[nth] === 0 ? minutes.map(() => null) : minutes)),
    notes: sums.map((sum) => formatCount(sum)),
    sentence: sentences.length === 0 ? 'no attempts' : sentences.join(', '),
  }
}

function latencyOf({ from, mean_ms: means, max_ms: maxima }: HistoryShape): ShownLines {
  const longest = Math.max(0, ...maxima.map((ms) => ms ?? 0))
  return {
    values: [means, maxima],
    notes: [lastText(means, from), `${formatMs(longest)} at most`],
    sentence: `the longest response took ${formatMs(longest)}`,
  }
}

function delayOf(history: HistoryShape): ShownLines {
  const values = [history.delivery_p50_ms, history.delivery_p99_ms]
  const [p50, p99] = values.map((line) => formatMs(line.findLast((ms) => ms !== null)))
  return {
    values,
    notes: values.map((line) => lastText(line, history.from)),
    sentence: `half of the updates took ${p50}, 99 % at most ${p99}`,
  }
}

/** The minute that is not over may have no value yet. */
const presentMinutes = 2

/** For example `40 ms now` or `40 ms at 14:02`. */
function lastText(line: readonly (number | null)[], fromS: number): string {
  const at = line.findLastIndex((ms) => ms !== null)
  const isPresent = at >= line.length - presentMinutes
  const when = isPresent ? 'now' : `at ${formatTime(fromS + at * 60).slice(0, 5)}`
  return `${formatMs(line[at])} ${when}`
}
