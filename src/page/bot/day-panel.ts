/** Two charts of the last day, which the server keeps: how many updates came and went in a second, and how late they were. */
import { ifOlder } from '../frame/api-client.ts'
import { element } from '../elements/element.ts'
import { formatMs, formatRate } from '../elements/format.ts'
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
  { name: 'pushed', color: 'pushed' },
  { name: 'confirmed', color: 'confirmed' },
  { name: 'delivered', color: 'delivered' },
  { name: 'refused', color: 'failed' },
] as const
const delays = [
  { name: 'p50', color: 'p50', of: 'webhook', which: 'p50_ms' },
  { name: 'p99', color: 'p99', of: 'webhook', which: 'p99_ms' },
  { name: 'polls p50', color: 'p50', isDashed: true, of: 'polling', which: 'p50_ms' },
  { name: 'polls p99', color: 'p99', isDashed: true, of: 'polling', which: 'p99_ms' },
] as const

type Values = readonly (number | null)[]

export function dayPanel(context: PageContext): HTMLElement {
  const rateChart = lineChart(context, {
    ...shared,
    title: 'Updates per second, last 24 hours',
    lines: rates,
    values: 'rate',
  })
  const delayChart = lineChart(context, {
    ...shared,
    title: 'From push to delivery, last 24 hours',
    lines: delays,
    emptyText: 'Nothing was delivered yet.',
    values: 'duration',
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
