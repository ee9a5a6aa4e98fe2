/** The first page: what needs attention, the sums, the last day, and all bots. */
import { attentionPanel } from './attention-panel.ts'
import { botTable } from './bot-table.ts'
import { dayPanel } from '../bot/day-panel.ts'
import { element } from '../elements/element.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { serverPanel } from '../server/server-panel.ts'

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
