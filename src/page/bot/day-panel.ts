/** Two charts of the last day, which the server keeps: how many updates came and went in a second, and how late they were. */
import { ifOlder } from '../frame/api-client.ts'
import { element } from '../elements/element.ts'
import { formatRate } from '../elements/format.ts'
import { lineChart } from '../elements/line-chart.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ServerHistoryShape } from '../frame/shapes.ts'

/** A minute is over once a minute. */
const pauseMs = 30_000
const secondsPerDay = 86_400
const shared = {
  spanS: secondsPerDay,
  spanMinS: 900,
  emptyText: 'The first minute of the server is not over yet.',
}

const rates = [
  { name: 'pushed', color: 5 },
  { name: 'confirmed', color: 4 },
  { name: 'delivered', color: 1 },
  { name: 'refused', color: 2 },
] as const
const delays = [
  { name: 'webhooks, p50', color: 1, of: 'webhook', which: 'p50_ms' },
  { name: 'webhooks, p99', color: 3, of: 'webhook', which: 'p99_ms' },
  { name: 'polls, p50', color: 5, of: 'polling', which: 'p50_ms' },
  { name: 'polls, p99', color: 4, of: 'polling', which: 'p99_ms' },
] as const

type Values = readonly (number | null)[]

export function dayPanel(context: PageContext): HTMLElement {
  const rateChart = lineChart(context, {
    ...shared,
    title: 'Updates per second, last 24 hours',
    lines: rates,
    formatValue: formatRate,
  })
  const delayChart = lineChart(context, {
    ...shared,
    title: 'From push to delivery, last 24 hours',
    lines: delays,
    emptyText: 'Nothing was delivered yet.',
    formatValue: formatMs,
  })
  context.poll(pauseMs, async () => {
    const history = await context.api.call('getServerHistory', {}).catch(ifOlder)
    if (history === undefined) return
    const times = history.updates.pushed.map((_, minute) => history.from + minute * 60)
    const counts = rates.map(({ name }) => history.updates[name].map(perSecond))
    rateChart.show(dataOf(times, counts, { names: rates, format: formatRate }))
    const late = delays.map(({ of, which }) => delaysOf(history, of, which))
    delayChart.show(dataOf(times, late, { names: delays, format: formatMs }))
  })
  return element('div', { class: 'pair' }, rateChart.root, delayChart.root)
}

function delaysOf(
  { delivery }: ServerHistoryShape,
  of: 'webhook' | 'polling',
  which: 'p50_ms' | 'p99_ms',
): Values {
  return delivery[of][which]
}

function perSecond(count: number | null): number | null {
  return count === null ? null : count / 60
}

interface Lines {
  readonly names: readonly { readonly name: string }[]
  readonly format: (value: number | null | undefined) => string
}

/** The last minute is not over, so it would be a fall at the end of each line. */
function dataOf(
  times: readonly number[],
  all: readonly Values[],
  { names, format }: Lines,
): Parameters<ReturnType<typeof lineChart>['show']>[0] {
  const values = all.map((line) => line.slice(0, -1))
  const notes = values.map((line) => format(line.findLast((value) => value !== null)))
  const noted = names.map(({ name }, nth) => `${name} ${notes[nth]}`)
  return { times: times.slice(0, -1), values, notes, sentence: `last minute ${noted.join(', ')}` }
}

function formatMs(ms: number | null | undefined): string {
  return typeof ms === 'number' ? `${formatRate(ms)} ms` : '–'
}
