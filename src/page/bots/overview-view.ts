/** The first page: what needs attention, the sums, the last day, and all bots. */
import { attentionPanel } from './attention-panel.ts'
import { botTable } from './bot-table.ts'
import { dayPanel } from '../bot/day-panel.ts'
import { element } from '../elements/element.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { serverPanel } from '../server/server-panel.ts'
import type { RightsShape } from '../frame/shapes.ts'

export function overviewView(context: PageContext): PageView {
  const bots = botTable(context)
  const attention = attentionPanel(context, (state) => bots.select(state))
  const server = serverPanel(context, {
    onFailing: () => bots.select('failing'),
    onSummary: (summary) => attention.show(summary),
  })
  const register = element('a', { href: '#/register', class: 'button primary' }, 'Register a bot')
  const heading = element(
    'div',
    { class: 'heading' },
    element('h1', {}, 'Overview'),
    context.may('manage') ? register : undefined,
  )
  const [status, ...panels] = server
  const root = element(
    'div',
    {},
    heading,
    status,
    attention.root,
    ...panels,
    dayPanel(context),
    bots.root,
  )
  return { title: 'Overview', root }
}

/** The first page for a key that may not see all bots: what the key may do, and its bots. */
export function rightsView({ name, scopes, bots }: RightsShape): PageView {
  const root = element(
    'section',
    { class: 'card' },
    element('h1', {}, `Your key: ${name ?? ''}`),
    element('p', {}, `Its scopes: ${scopes.join(', ')}.`),
    bots === null ? element('p', {}, 'To see bots, a key needs the scope read.') : botList(bots),
  )
  return { title: 'Your key', root }
}

function botList(bots: readonly number[]): HTMLElement {
  const links = bots.map((id) => element('li', {}, element('a', { href: `#/bots/${id}` }, `${id}`)))
  return element('div', {}, element('p', {}, 'Its bots:'), element('ul', {}, ...links))
}
