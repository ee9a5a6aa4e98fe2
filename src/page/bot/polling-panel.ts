/** What a queue without a webhook shows in place of attempts: what its polls got and confirmed, when, and by which programs. */
import { formatCount } from '../elements/format.ts'
import { cardElement, element, setElementText } from '../elements/element.ts'
import { lineChart, type LineChartData } from '../elements/line-chart.ts'
import { hourSpan, hourTimes } from './hour-times.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { HistoryShape, QueueShape } from '../frame/shapes.ts'
import { type PollFact, pollFacts } from './poll-facts.ts'

export interface PollingPanel {
  readonly root: HTMLElement
  readonly show: (state: QueueShape) => void
  readonly showHistory: (history: HistoryShape) => void
}

/** Makes the chart and the facts of the polls of a queue. */
export function pollingPanel(context: PageContext): PollingPanel {
  const chart = lineChart(context, {
    title: 'Fetched and confirmed per minute, last hour',
    lines: [
      { name: 'fetched', color: 'fetched' },
      { name: 'confirmed', color: 'confirmed' },
    ],
    values: 'count',
    ...hourSpan,
    emptyText: 'No poll got an update since the worker of this bot has started, or for an hour.',
  })
  const list = element('dl', { class: 'facts' })
  const polls = cardElement('Polls', list)
  const root = element('div', { class: 'pair', hidden: true }, chart.root, polls)
  const show = (state: QueueShape): void => {
    root.hidden = state.mode !== 'polling'
    if (!root.hidden) showFacts(list, pollFacts(state, context.clock.nowMs() / 1_000))
  }
  return { root, show, showHistory: (history) => chart.show(polledOf(history)) }
}

function polledOf(history: HistoryShape): LineChartData {
  const { fetched = [], confirmed = [] } = history
  const [got, done] = [fetched, confirmed].map((minutes) => minutes.reduce((sum, n) => sum + n, 0))
  const isSilent = got === 0 && done === 0
  return {
    ...hourTimes(history),
    // Lines of zeros say less than a sentence.
    values: isSilent ? [[], []] : [fetched, confirmed],
    notes: [formatCount(got), formatCount(done)],
    sentence: `polls got ${formatCount(got)} updates and confirmed ${formatCount(done)}`,
  }
}

/** What a reader has marked stays marked. */
function showFacts(list: HTMLElement, facts: readonly PollFact[]): void {
  const names = facts.map(({ name }) => name)
  const shown = Array.from(list.querySelectorAll('dt'), (term) => term.textContent)
  if (names.join() !== shown.join()) {
    list.replaceChildren(...facts.flatMap(({ name }) => [element('dt', {}, name), element('dd')]))
  }
  for (const [nth, value] of [...list.querySelectorAll('dd')].entries()) {
    const fact = facts[nth]
    if (fact === undefined) continue
    setElementText(value, fact.text)
    value.className = fact.isTrouble === true ? 'degraded' : ''
  }
}
