/** The bots with dead letters, those with the most first. */
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { cardElement, element } from '../elements/element.ts'
import { formatCount, shardsText } from '../elements/format.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import type { ListedBotShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

const pauseMs = 5_000
/** Chosen: several screens. Who has more looks at those with the most. */
const shownMax = 100

const columns: readonly Column<ListedBotShape>[] = [
  { title: 'Bot', cell: linkOf },
  {
    title: 'Name',
    style: 'name',
    cell: (bot) => [bot.first_name, element('span', { class: 'faint' }, ` @${bot.username}`)],
  },
  { title: 'Dead letters', style: 'number', cell: (bot) => formatCount(bot.dead_letters) },
  { title: 'Pending', style: 'number wide', cell: ({ pending }) => formatCount(pending) },
]

export function deadLettersView({ api, poll }: PageContext): PageView {
  const count = statusLine('faint lead')
  const waiting = element('div', { class: 'skeleton' })
  const none = emptyState({
    title: 'No dead letters.',
    text: 'An update that a webhook rejects for good, or that expires before it is delivered, is kept here, and can be delivered again.',
    isHidden: true,
  })
  const table = dataTable('Bots with dead letters', columns)
  poll(pauseMs, async () => {
    const query = { sort: 'dead_letters', details: true, limit: shownMax } as const
    const [{ bots, missing_shards: missing = [] }, { dead_letters: total }] = await Promise.all([
      api.call('listBots', { query }),
      api.call('getSummary', {}),
    ])
    const shown = bots.filter((bot) => (bot.dead_letters ?? 0) > 0)
    waiting.hidden = true
    none.hidden = shown.length > 0
    table.show(shown)
    const lack = missing.length > 0 ? ` The bots of ${shardsText(missing)} are missing.` : ''
    count.say(shown.length === 0 ? lack.trim() : `${totalText(total, shown.length)}${lack}`)
  })
  const root = element(
    'div',
    {},
    element('div', { class: 'heading' }, element('h1', {}, 'Dead letters')),
    cardElement('Bots with dead letters', count.root, waiting, none, table.root),
  )
  return { title: 'Dead letters', root }
}

/** The sum has the /test/ queues, too. */
function totalText(total: number, bots: number): string {
  const letters = total === 1 ? '1 dead letter' : `${formatCount(total)} dead letters`
  if (bots === shownMax) return `${letters}. The ${formatCount(bots)} bots with the most:`
  return `${letters} in all queues.`
}

function linkOf({ bot_id: id }: ListedBotShape): HTMLElement {
  const href = botHash({ botId: `${id}`, isTest: false }, 'dead-letters')
  return element('a', { href, class: 'row-link' }, `${id}`)
}
