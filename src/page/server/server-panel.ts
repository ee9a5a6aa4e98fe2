/** The state of the server: what is wrong with it, and its sums and rates now. */
import { ifOlder } from '../frame/api-client.ts'
import { buttonElement, element, setElementText } from '../elements/element.ts'
import { formatAge, formatCount, formatRate, isLate, shardsText } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { linkTo, type PagePart } from '../elements/page-part.ts'
import { RateMeter, type Rates, readMetricsText } from './rate-meter.ts'
import { pageCall } from '../frame/page-calls.ts'
import { readinessTexts } from './readiness-text.ts'
import type { ReadinessShape, SummaryShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'
import type { Waiting } from '../elements/waiting.ts'

const pauseMs = 1_000
/** Chosen: what comes every few seconds is no 0, and many webhooks that fail are tried again within half a minute. */
const [eventsShortestMs, errorsShortestMs] = [5_000, 30_000]
/** The rates of the last minute, and in which tile each is shown. What fails is tried again after minutes: its unit is one. */
const rateKinds = [
  { rate: 'push', shortestMs: eventsShortestMs, tile: 'Pushed / s', unitS: 1 },
  { rate: 'poll', shortestMs: eventsShortestMs, tile: 'Polled / s', unitS: 1 },
  { rate: 'deliver', shortestMs: eventsShortestMs, tile: 'Delivered / s', unitS: 1 },
  { rate: 'errors', shortestMs: errorsShortestMs, tile: 'Errors / min', unitS: 60 },
] as const
const rateNames = rateKinds.map(({ rate }) => rate)
type RateName = (typeof rateNames)[number]

/** What is read of the server at once. */
export interface ServerState {
  /** Undefined if the server is older than this call. */
  readonly summary: SummaryShape | undefined
  readonly metrics: ReadonlyMap<string, number>
  /** Undefined if the server does not respond. */
  readonly readiness: ReadinessShape | undefined
}

export interface ServerPanelListener {
  /** The reader wants to see the bots whose webhooks fail. */
  readonly onFailing: () => void
  /** The sums were read; undefined if the server is older than this call. */
  readonly onSummary: (summary: SummaryShape | undefined) => void
  /** Stands in place of what follows from the sums. */
  readonly waiting: Waiting
}

/** Returns the line that says what is wrong with the server, and the sums. */
export function serverPanel(
  context: PageContext,
  { onFailing, onSummary, waiting }: ServerPanelListener,
): readonly HTMLElement[] {
  const { api, clock, poll } = context
  const status = statusLine('banner')
  status.root.hidden = true
  const tiles = serverTiles(onFailing)
  const meter = new RateMeter(
    rateNames,
    new Map(rateKinds.map(({ rate, shortestMs }) => [rate, shortestMs])),
  )
  poll(
    pauseMs,
    async () => {
      const state = await serverState(api)
      const { summary } = state
      const atMs = clock.nowMs()
      const rates = meter.add({ atMs, counts: countsOf(state) })
      tiles.show({ summary, rates })
      onSummary(summary)
      const text = statusText(state)
      status.root.hidden = text === ''
      status.say(text)
    },
    waiting,
  )
  return [status.root, tiles.root]
}

interface TileData {
  readonly summary: SummaryShape | undefined
  readonly rates: Rates<RateName>
}

type Tile = readonly [title: string, value: HTMLElement, textOf: (data: TileData) => string]

function serverTiles(onFailing: () => void): PagePart<TileData> {
  const failing = buttonElement('–', onFailing)
  failing.className = 'link'
  failing.disabled = true
  const oldest = element('a', {}, '–')
  const letters = element('a', {}, '–')
  const tiles: readonly Tile[] = [
    ['Failing', failing, ({ summary }) => formatCount(failingOf(summary))],
    ['Pending', plainValue(), ({ summary }) => formatCount(summary?.pending)],
    ['Longest wait', oldest, ({ summary }) => formatAge(summary?.oldest_age)],
    ['Dead letters', letters, ({ summary }) => formatCount(summary?.dead_letters)],
    ...rateKinds.map(
      ({ rate, tile, unitS }): Tile => [
        tile,
        plainValue(),
        ({ rates: { [rate]: perSecond } }) =>
          formatRate(perSecond === null ? null : perSecond * unitS),
      ],
    ),
  ]
  const show = (data: TileData): void => {
    for (const [, value, textOf] of tiles) setElementText(value, textOf(data))
    const { summary } = data
    const count = failingOf(summary)
    failing.setAttribute('aria-label', `${formatCount(count)}: show failing webhooks`)
    failing.disabled = !count
    failing.classList.toggle('failing', Boolean(count))
    oldest.classList.toggle('degraded', isLate(summary?.oldest_age))
    linkTo(letters, summary?.dead_letters ? '#/dead-letters' : undefined)
    const id = summary?.oldest_bot_id ?? null
    const queue = { botId: `${id}`, isTest: summary?.oldest_test === true }
    linkTo(oldest, id === null ? undefined : botHash(queue))
  }
  const shown = tiles.map(([title, value]) =>
    element('div', { class: 'tile' }, element('dt', {}, title), element('dd', {}, value)),
  )
  return { root: element('dl', { class: 'tiles', tabindex: 0 }, ...shown), show }
}

function plainValue(): HTMLElement {
  return element('span', {}, '–')
}

function failingOf(summary: SummaryShape | undefined): number | undefined {
  return summary && (summary.health['failing'] ?? 0)
}

/** What needs attention, above everything else. */
function statusText({ summary, readiness }: ServerState): string {
  const missing = summary?.missing_shards ?? []
  const texts = readiness === undefined ? [] : readinessTexts(readiness)
  const lack = `The numbers below lack the bots of ${shardsText(missing)}.`
  return (missing.length > 0 ? [...texts, lack] : texts).join(' ')
}

/** The summary counts all nodes of a cluster, the metrics only the one that responds. */
function countsOf({ summary, metrics }: ServerState): Readonly<Record<RateName, number>> {
  const metric = (name: string): number => metrics.get(name) ?? 0
  const refused = summary?.updates.refused ?? metric('updates_refused_total')
  return {
    push: summary?.updates.pushed ?? metric('updates_pushed_total'),
    poll: summary?.updates.confirmed ?? metric('updates_confirmed_total'),
    deliver: summary?.updates.delivered ?? metric('updates_delivered_total'),
    errors: refused + metric('webhook_failures_total') + metric('store_failures_total'),
  }
}

/** Reads the state of the server. */
export async function serverState(api: PageContext['api']): Promise<ServerState> {
  const [summary, metrics, readiness] = await Promise.all([
    api.call('getSummary', {}).catch(ifOlder),
    api.metrics().then(readMetricsText),
    readinessOf(),
  ])
  return { summary, metrics, readiness }
}

/** Returns what the server says about itself; undefined if it does not respond. One that is not ready says so with 503. */
async function readinessOf(): Promise<ReadinessShape | undefined> {
  try {
    const response = await fetch(pageCall('checkReadiness', {}).target, { cache: 'no-store' })
    const shape: ReadinessShape = await response.json()
    return shape
  } catch {
    return undefined
  }
}
