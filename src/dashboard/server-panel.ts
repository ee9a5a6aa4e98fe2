/** The state of the server: totals, rates of the last minutes, workers, shards, and how long its event loops make work wait. */
import { pageCall } from './page-calls.ts'
import type { ApiClient } from './api-client.ts'
import { ApiError } from './api-client.ts'
import { element, setElementText } from './element.ts'
import { formatAge, formatBytes, formatCount, formatRate, shardsText } from './format.ts'
import { LineChart } from './line-chart.ts'
import type { PageContext } from './page-context.ts'
import { type CounterSample, RateMeter, type Rates } from './rate-meter.ts'
import { readMetricsText } from './read-metrics-text.ts'
import { readinessTexts } from './readiness-text.ts'
import type { ReadinessShape, SummaryShape } from './shapes.ts'

type RateName = 'push' | 'poll' | 'deliver' | 'errors'
type TileName = RateName | 'pending' | 'oldest' | 'failing' | 'dead'
type Metrics = ReadonlyMap<string, number>

const rateNames: readonly RateName[] = ['push', 'poll', 'deliver', 'errors']
/** Two minutes, if the server is asked every second. */
const samplesMax = 120
const tileTitles: Readonly<Record<TileName, string>> = {
  failing: 'Failing webhooks',
  pending: 'Pending updates',
  oldest: 'Oldest pending',
  dead: 'Dead letters',
  push: 'Pushed / s',
  poll: 'Polled / s',
  deliver: 'Delivered / s',
  errors: 'Errors / s',
}

export interface ServerPanelOptions extends PageContext {
  /** The reader wants to see the bots whose webhooks fail. */
  onFailing(): void
}

export class ServerPanel {
  readonly root: HTMLElement
  readonly #context: PageContext
  readonly #status = element('p', { role: 'status', class: 'banner', hidden: true })
  readonly #failing: HTMLElement
  readonly #oldest = element('a', {}, '–')
  readonly #meter = new RateMeter(rateNames)
  readonly #tiles = new Map<TileName, HTMLElement>()
  readonly #chart = new LineChart({
    title: 'Rates per second',
    lines: [
      { name: 'pushed', color: 5 },
      { name: 'polled', color: 4 },
      { name: 'delivered', color: 1 },
      { name: 'errors', color: 2 },
    ],
    spanS: samplesMax,
    emptyText: 'The rates appear in a moment.',
    formatValue: formatRate,
  })
  readonly #facts = element('dl', { class: 'facts' })
  #samples: { readonly atMs: number; readonly rates: Rates<RateName> }[] = []

  constructor(options: ServerPanelOptions) {
    this.#context = options
    this.#failing = element('button', { type: 'button', class: 'link', disabled: true }, '–')
    this.#failing.addEventListener('click', () => options.onFailing())
    const tiles = Object.entries(tileTitles).map(([name, title]) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.entries forgets the names
      const value = this.#tileOf(name as TileName)
      return element('div', { class: 'tile' }, element('dt', {}, title), element('dd', {}, value))
    })
    this.root = element(
      'div',
      {},
      this.#status,
      element('dl', { class: 'tiles' }, ...tiles),
      element(
        'div',
        { class: 'pair' },
        this.#chart.root,
        element('section', { class: 'card' }, element('h2', {}, 'Server'), this.#facts),
      ),
    )
  }

  close(): void {
    this.#chart.close()
  }

  #tileOf(name: TileName): HTMLElement {
    const value = name === 'oldest' ? this.#oldest : element('span', {}, '–')
    const shown = name === 'failing' ? this.#failing : value
    this.#tiles.set(name, shown)
    return shown
  }

  async refresh(): Promise<void> {
    const { api, clock } = this.#context
    const [summary, metrics, readiness] = await Promise.all([
      summaryOf(api),
      api.metrics().then(readMetricsText),
      readinessOf(),
    ])
    const atMs = clock.nowMs()
    this.#addSample({ atMs, counts: countsOf(summary, metrics) })
    this.#showTotals(summary)
    this.#showStatus(summary, readiness)
    this.#showServer(summary, metrics, readiness)
  }

  #addSample(sample: CounterSample<RateName>): void {
    const rates = this.#meter.add(sample)
    this.#samples = [...this.#samples, { atMs: sample.atMs, rates }].slice(-samplesMax)
    for (const name of rateNames) this.#set(name, formatRate(rates[name]))
    const shown = rateNames.map((name) => `${name} ${formatRate(rates[name])}`)
    this.#chart.show({
      times: this.#samples.map(({ atMs }) => atMs / 1_000),
      values: rateNames.map((name) => this.#samples.map((each) => each.rates[name])),
      notes: rateNames.map((name) => formatRate(rates[name])),
      sentence: `now ${shown.join(', ')}`,
    })
  }

  #showTotals(summary: SummaryShape | undefined): void {
    this.#set('pending', formatCount(summary?.pending))
    this.#set('oldest', formatAge(summary?.oldest_age))
    const failing = summary?.health['failing'] ?? (summary && 0)
    this.#set('failing', formatCount(failing))
    this.#failing.setAttribute('aria-label', `${formatCount(failing)}: show failing webhooks`)
    this.#failing.toggleAttribute('disabled', !failing)
    this.#failing.classList.toggle('failing', Boolean(failing))
    this.#set('dead', formatCount(summary?.dead_letters))
    this.#showOldest(summary)
  }

  #showOldest(summary: SummaryShape | undefined): void {
    const id = summary?.oldest_bot_id ?? null
    if (id === null) this.#oldest.removeAttribute('href')
    else this.#oldest.href = `#/bots/${id}${summary?.oldest_test === true ? '/test' : ''}`
  }

  /** What needs attention, above everything else. */
  #showStatus(summary: SummaryShape | undefined, readiness: ReadinessShape | undefined): void {
    const missing = summary?.missing_shards ?? []
    const texts = [
      ...(readiness === undefined ? [] : readinessTexts(readiness)),
      ...(missing.length > 0 ? [`The numbers below lack the bots of ${shardsText(missing)}.`] : []),
    ]
    const text = texts.join(' ')
    this.#status.hidden = text === ''
    setElementText(this.#status, text)
  }

  #showServer(
    summary: SummaryShape | undefined,
    metrics: Metrics,
    readiness: ReadinessShape | undefined,
  ): void {
    const missing = summary?.missing_shards ?? []
    const facts: [string, string][] = [
      ['Status', readiness?.status ?? 'does not respond'],
      ['Bots', formatCount(summary?.bots)],
      ['Workers', formatCount(summary?.workers)],
      ['Shards', formatCount(summary?.shards)],
      ...(missing.length > 0 ? [['Missing shards', missing.join(', ')] as [string, string]] : []),
      ['Event-loop delay, 99 %', formatMs(metrics.get('event_loop_delay_p99_seconds'))],
      ['Event-loop delay, longest', formatMs(metrics.get('event_loop_delay_max_seconds'))],
      ['Pending bytes', formatBytes(summary?.pending_bytes)],
      ['Polls that wait', formatCount(metrics.get('polls_waiting'))],
      ['Connections to webhooks', formatCount(metrics.get('webhook_connections_active'))],
      ['Bots in memory', formatCount(metrics.get('bots_loaded'))],
    ]
    this.#facts.replaceChildren(
      ...facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
    )
  }

  #set(name: TileName, text: string): void {
    const tile = this.#tiles.get(name)
    if (tile !== undefined) setElementText(tile, text)
  }
}

/** Returns undefined if the server is older than this call. */
async function summaryOf(api: ApiClient): Promise<SummaryShape | undefined> {
  try {
    return await api.call('getSummary', {})
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

/** A server that is not ready says so with 503. */
async function readinessOf(): Promise<ReadinessShape | undefined> {
  try {
    const response = await fetch(pageCall('checkReadiness', {}).target, { cache: 'no-store' })
    const shape: ReadinessShape = await response.json()
    return shape
  } catch {
    return undefined
  }
}

/** The summary counts all nodes of a cluster, the metrics only the one that responds. */
function countsOf(
  summary: SummaryShape | undefined,
  metrics: Metrics,
): Readonly<Record<RateName, number>> {
  const metric = (name: string): number => metrics.get(name) ?? 0
  const refused = summary?.updates.refused ?? metric('updates_refused_total')
  return {
    push: summary?.updates.pushed ?? metric('updates_pushed_total'),
    poll: summary?.updates.confirmed ?? metric('updates_confirmed_total'),
    deliver: summary?.updates.delivered ?? metric('updates_delivered_total'),
    errors: refused + metric('webhook_failures_total') + metric('store_failures_total'),
  }
}

function formatMs(seconds: number | undefined): string {
  return seconds === undefined ? formatCount(seconds) : `${formatRate(seconds * 1_000)} ms`
}
