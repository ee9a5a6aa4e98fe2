/** The nodes and workers of the server, and how long its event loops make work wait. */
import { cardElement, element } from '../elements/element.ts'
import { factList, type Facts } from '../elements/page-part.ts'
import { formatBytes, formatCount } from '../elements/format.ts'
import { delayCell } from './node-cells.ts'
import { nodesPanel } from './nodes-panel.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { readinessTexts } from './readiness-text.ts'
import { type ServerState, serverState } from './server-panel.ts'
import { statusLine } from '../elements/messages.ts'
import { waitingFor } from '../elements/waiting.ts'

const pauseMs = 2_000

export function nodesView(context: PageContext): PageView {
  const { api, poll } = context
  const facts = factList()
  const waiting = waitingFor()
  const status = statusLine('banner')
  status.root.hidden = true
  poll(
    pauseMs,
    async () => {
      const state = await serverState(api)
      const { readiness } = state
      waiting.done()
      facts.show(factsOf(state))
      const text = readiness === undefined ? '' : readinessTexts(readiness).join(' ')
      status.root.hidden = text === ''
      status.say(text)
    },
    waiting,
  )
  const heading = element('div', { class: 'heading' }, element('h1', {}, 'Nodes'))
  const server = cardElement('Server', waiting.root, facts.root)
  const root = element('div', {}, heading, status.root, nodesPanel(context), server)
  return { title: 'Nodes', root }
}

function factsOf({ summary, metrics, readiness }: ServerState): Facts {
  const missing = summary?.missing_shards ?? []
  return [
    ['Status', readiness?.status ?? 'does not respond'],
    ['Bots', formatCount(summary?.bots)],
    ['Workers', formatCount(summary?.workers)],
    ['Shards', formatCount(summary?.shards)],
    ...(missing.length > 0 ? [['Missing shards', missing.join(', ')] as const] : []),
    ['Event-loop delay, 99 %', delayFact(metrics.get('event_loop_delay_p99_seconds'))],
    ['Event-loop delay, longest', delayFact(metrics.get('event_loop_delay_max_seconds'))],
    ['Pending bytes', formatBytes(summary?.pending_bytes)],
    ['Polls that wait', formatCount(metrics.get('polls_waiting'))],
    ['Connections to webhooks', formatCount(metrics.get('webhook_connections_active'))],
    ['Bots in memory', formatCount(metrics.get('bots_loaded'))],
  ]
}

function delayFact(seconds: number | undefined): HTMLElement {
  const { text, style } = delayCell(seconds === undefined ? undefined : seconds * 1_000)
  return element('span', { class: style }, text)
}
