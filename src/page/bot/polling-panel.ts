/** What a queue without a webhook shows in place of attempts: what its polls got and confirmed, when, and by which programs. */
import { formatCount } from '../elements/format.ts'
import { cardElement, element, setElementText } from '../elements/element.ts'
import { lineChart, type LineChartData } from '../elements/line-chart.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import type { HistoryShape, QueueShape } from '../frame/shapes.ts'
import { type PollFact, pollFacts } from './poll-facts.ts'

const pauseMs = 5_000

/** Makes the chart and the facts of the polls of a queue, which are shown its state. */
export function pollingPanel(context: PageContext, queue: BotQueueName): PagePart<QueueShape> {
  const chart = lineChart(context, {
    title: 'Fetched and confirmed per minute, last hour',
    lines: [
      { name: 'fetched', color: 'fetched' },
      { name: 'confirmed', color: 'confirmed' },
    ],
    values: 'count',
    spanS: 3_600,
    emptyText: 'No poll got an update since the worker of this bot has started, or for an hour.',
  })
  let isShown = false
  const hurry = context.poll(pauseMs, async () => {
    if (!isShown) return
    chart.show(polledOf(await context.api.call('getHistory', ofQueue(queue, {}))))
  })
  const list = element('dl', { class: 'facts' })
  const polls = cardElement('Polls', list)
  const root = element('div', { class: 'pair', hidden: true }, chart.root, polls)
  const show = (state: QueueShape): void => {
    const isNew = !isShown
    isShown = state.mode === 'polling'
    root.hidden = !isShown
    if (!isShown) return
    if (isNew) hurry()
    showFacts(list, pollFacts(state, context.clock.nowMs() / 1_000))
  }
  return { root, show }
}

function polledOf({ from, fetched = [], confirmed = [] }: HistoryShape): LineChartData {
  const [got, done] = [fetched, confirmed].map((minutes) => minutes.reduce((sum, n) => sum + n, 0))
  const isSilent = got === 0 && done === 0
  return {
    times: fetched.map((_, minute) => from + minute * 60),
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
