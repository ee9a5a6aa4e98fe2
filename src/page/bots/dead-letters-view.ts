/** The dead letters of all bots: by their reasons, and the bots with the most. */
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { cardElement, element } from '../elements/element.ts'
import { formatCount, shardsText } from '../elements/format.ts'
import { botColumns } from '../elements/bot-columns.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import type { AllDeadReasonsShape, ListedBotShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'
import {
  type DeadLetterGroups,
  deadLetterGroups,
  lettersText,
} from '../updates/dead-letter-groups.ts'
import { waitingFor } from '../elements/waiting.ts'

const pauseMs = 5_000
/** Chosen: several screens. Who has more looks at those with the most. */
const shownMax = 100

const columns: readonly Column<ListedBotShape>[] = [
  ...botColumns<ListedBotShape>('dead-letters'),
  { title: 'Dead letters', style: 'number', cell: (bot) => formatCount(bot.dead_letters) },
  { title: 'Pending', style: 'number', cell: ({ pending }) => formatCount(pending) },
]

export function deadLettersView(context: PageContext): PageView {
  const { api, poll } = context
  const count = statusLine('faint lead')
  const waiting = waitingFor()
  const none = emptyState({
    title: 'No dead letters.',
    text: 'An update that a webhook refuses for good, or that expires before it is delivered, is kept here, and can be delivered again.',
    isHidden: true,
  })
  const table = dataTable('Bots with dead letters', columns)
  const refresh = async (): Promise<void> => {
    const query = { sort: 'dead_letters', details: true, limit: shownMax } as const
    const [{ bots, missing_shards: missing = [] }, { dead_letters: total }] = await Promise.all([
      api.call('listBots', { query }),
      api.call('getSummary', {}),
    ])
    const shown = bots.filter((bot) => (bot.dead_letters ?? 0) > 0)
    // What is above the list must not appear after it.
    await reasons.ready
    waiting.done()
    cards.hidden = false
    none.hidden = shown.length > 0
    table.show(shown)
    const lack = missing.length > 0 ? ` The bots of ${shardsText(missing)} are missing.` : ''
    count.say(shown.length === 0 ? lack.trim() : `${totalText(total, shown.length)}${lack}`)
  }
  const reasons = reasonsCard(context, () => hurry())
  const bots = cardElement('Bots with dead letters', count.root, none, table.root)
  const cards = element('div', { hidden: true }, reasons.root, bots)
  const hurry = poll(pauseMs, refresh, waiting)
  const heading = element('div', { class: 'heading' }, element('h1', {}, 'Dead letters'))
  const root = element('div', {}, heading, waiting.root, cards)
  return { title: 'Dead letters', root }
}

function reasonsCard(context: PageContext, onActed: () => void): DeadLetterGroups {
  const waiting = waitingFor()
  const said = statusLine('faint lead')
  const groups = deadLetterGroups(context, {
    read: () => context.api.call('sumAllDeadLetters', {}),
    onRead(sums) {
      waiting.done()
      root.hidden = sums === undefined
      said.say(sums === undefined ? '' : partText(sums))
    },
    waiting,
    onActed,
  })
  const root = cardElement('By reason', said.root, waiting.root, groups.root)
  return { ...groups, root }
}

/** What the sums are of, if that is not all. */
function partText({
  groups,
  looked_at: looked,
  is_complete: isComplete,
  missing_shards: missing = [],
}: AllDeadReasonsShape): string {
  return [
    ...(groups.length === 0 && missing.length === 0 ? ['No dead letters.'] : []),
    ...(isComplete ? [] : [`At least: the server has looked at ${lettersText(looked)}.`]),
    ...(missing.length > 0 ? [`The bots of ${shardsText(missing)} are missing.`] : []),
  ].join(' ')
}

/** The sum has the /test/ queues, too. */
function totalText(total: number, bots: number): string {
  const letters = lettersText(total)
  if (bots === shownMax) return `${letters}. The ${formatCount(bots)} bots with the most:`
  return `${letters} in all queues.`
}
