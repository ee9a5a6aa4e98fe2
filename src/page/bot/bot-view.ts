/** The page of one queue of one bot for an operator: a tab for each thing that is done with it. */
import { activityTab, updatesTab } from './tabs.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { checkPanel } from './check-panel.ts'
import { deadLettersPanel } from './dead-letters-panel.ts'
import { element, setElementText } from '../elements/element.ts'
import { formatCount } from '../elements/format.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import { botHash } from '../frame/page-route.ts'
import { pushPanel } from './push-panel.ts'
import { type BotRoute, queueView, type TabMakers, type TabPart, unchanging } from './queue-view.ts'
import { settingsPanel } from './settings-panel.ts'
import type { BotShape } from '../frame/shapes.ts'
import { stateOf } from '../elements/state-head.ts'
import { tailPanel } from '../updates/tail-panel.ts'

const pauseMs = 1_000

export function botView(context: PageContext, first: BotRoute): PageView {
  const links = linksOf(first.queue, sameNameNote(context))
  return queueView(context, first, { tabs: tabMakers, links })
}

const tabMakers = {
  activity: (context, { queue }) => activityTab(context, queue),
  updates: updatesTab,
  'dead-letters': (context, { queue }) => unchanging(deadLettersPanel(context, queue)),
  try: (context, { queue }) => tryTab(context, queue),
  settings: (context, { queue }) => settingsPanel(context, queue),
} satisfies TabMakers

function tryTab(context: PageContext, queue: BotQueueName): TabPart {
  const { api, may, poll } = context
  const push = pushPanel(context, queue)
  push.root.hidden = !may('push')
  const tail = tailPanel(context, queue, push)
  poll(pauseMs, async () => {
    if (!push.isWaiting()) return
    const { attempts } = await api.call('listAttempts', ofQueue(queue, {}))
    push.attempted(attempts)
  })
  const check = checkPanel(context, queue)
  const root = element('div', {}, element('div', { class: 'pair' }, push.root, tail), check)
  const show = (bot: BotShape): void => {
    check.hidden = !may('manage') || stateOf(bot, queue).mode !== 'webhook'
  }
  return { root, show }
}

/** A bot that there is not has no other queue. */
function linksOf(queue: BotQueueName, note: PagePart<BotShape>): PagePart<BotShape> {
  const { isTest } = queue
  const all = element('a', { href: '#/' }, 'All bots')
  const name = isTest ? 'the main queue' : 'the /test/ queue'
  const href = botHash({ ...queue, isTest: !isTest })
  const other = element('span', { hidden: true }, ' · ', element('a', { href }, `Show ${name}`))
  const show = (bot: BotShape): void => {
    other.hidden = false
    note.show(bot)
  }
  return { root: element('p', { class: 'crumbs' }, all, other, note.root), show }
}

/** The server takes a username that another bot has. Looks for one once. */
function sameNameNote({ api, seesAll }: PageContext): PagePart<BotShape> {
  const link = element('a', { class: 'degraded' })
  const root = element('span', { hidden: true }, ' · ', link)
  let hasLooked = !seesAll
  const look = async ({ bot_id: id, username }: BotShape): Promise<void> => {
    const { bots } = await api.call('listBots', { query: { prefix: username, limit: 1_000 } })
    const others = bots.filter(
      (each) => each.bot_id !== id && each.username.toLowerCase() === username.toLowerCase(),
    )
    root.hidden = others.length === 0
    const count = others.length === 1 ? 'another bot' : `${formatCount(others.length)} other bots`
    setElementText(link, `Same username as ${count}`)
    link.setAttribute('href', `#/?${new URLSearchParams({ search: username })}`)
  }
  const show = (bot: BotShape): void => {
    if (hasLooked) return
    hasLooked = true
    look(bot).catch(() => {
      // The trouble of a call ends only when the same call succeeds.
      hasLooked = false
    })
  }
  return { root, show }
}
