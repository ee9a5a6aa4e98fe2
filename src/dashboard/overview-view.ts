/** The first page: the server and its bots. */
import { botTable } from './bot-table.ts'
import { element } from './element.ts'
import { nodesPanel } from './nodes-panel.ts'
import type { PageContext, PageView } from './page-context.ts'
import { serverPanel } from './server-panel.ts'

export function overviewView(context: PageContext): PageView {
  const bots = botTable(context)
  const server = serverPanel(context, () => bots.select('failing'))
  const heading = element('h1', {}, 'Overview')
  const root = element('div', {}, heading, server, nodesPanel(context), bots.root)
  return { title: 'Overview', root }
}
