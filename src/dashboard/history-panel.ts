/** Two charts of the last hour of a webhook: how its attempts ended, and how long its responses took. */
import { element } from './element.ts'
import { formatCount } from './format.ts'
import { LineChart } from './line-chart.ts'
import type { HistoryShape } from './shapes.ts'

const outcomes = [
  'delivered',
  'rejected',
  'timed_out',
  'connection_failed',
  'tls_failed',
  'refused_for_good',
  'expired',
]

export class HistoryPanel {
  readonly root: HTMLElement
  readonly #outcomes = new LineChart({
    title: 'Outcomes per minute, last hour',
    lines: outcomes.map((outcome) => outcome.replaceAll('_', ' ')),
  })
  readonly #latency = new LineChart({
    title: 'Response time in ms, last hour',
    lines: ['mean', 'longest'],
  })

  constructor() {
    this.root = element('div', { class: 'pair' }, this.#outcomes.root, this.#latency.root)
  }

  show(history: HistoryShape): void {
    const times = history.mean_ms.map((_, minute) => history.from + minute * 60)
    const values = outcomes.map((outcome) => history.outcomes[outcome] ?? [])
    const sums = values.map((counts) => counts.reduce((sum, count) => sum + count, 0))
    const said = outcomes
      .map((outcome, nth) => `${formatCount(sums[nth])} ${outcome.replaceAll('_', ' ')}`)
      .filter((text) => !text.startsWith('0 '))
    const sentence = said.length === 0 ? 'no deliveries' : said.join(', ')
    this.#outcomes.show({ times, values, sentence })
    const longest = Math.max(0, ...history.max_ms.map((ms) => ms ?? 0))
    this.#latency.show({
      times,
      values: [history.mean_ms, history.max_ms],
      sentence: `the longest response took ${formatCount(longest)} ms`,
    })
  }

  close(): void {
    this.#outcomes.close()
    this.#latency.close()
  }
}
