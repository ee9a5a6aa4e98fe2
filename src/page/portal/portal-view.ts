/** The page of a bot for its owner, who has a link and no key: its state, its updates, and what the link permits beside. */
import { actLabels } from '../frame/act-labels.ts'
import { activityTab, updatesTab } from '../bot/tabs.ts'
import { badgeElement, type PagePart, timeElement, updateLink } from '../elements/page-part.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { checkPanel } from '../bot/check-panel.ts'
import { deadLettersPanel } from '../bot/dead-letters-panel.ts'
import { buttonElement, cardElement, element } from '../elements/element.ts'
import { formatExact } from '../elements/format.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import {
  type BotRoute,
  queueView,
  type TabMakers,
  type TabPart,
  unchanging,
} from '../bot/queue-view.ts'
import { type Message, statusLine } from '../elements/messages.ts'
import type { AttemptShape } from '../frame/shapes.ts'
import { watchedUpdate } from '../updates/watched-update.ts'

/** What a link permits, as its responses say it. */
export interface LinkRights {
  readonly can: ReadonlySet<string>
  /** Unix seconds. */
  readonly endsAtS: number
}

const pauseMs = 1_000
/** The page of a link that may not look calls the server only to learn of the end of the link. */
const endPauseMs = 2_000

export function portalView(context: PageContext, route: BotRoute, link: LinkRights): PageView {
  const text = `This link works until ${formatExact(link.endsAtS)}.`
  const end = element('p', { class: 'crumbs' }, text)
  if (!link.can.has('look')) return actsView(context, route.queue, link, end)
  const tabs: TabMakers = {
    activity: ownActivity,
    updates: updatesTab,
    'dead-letters': (ofTab, { queue }) => unchanging(deadLettersPanel(ofTab, queue)),
    ...(mayAct(link)
      ? { try: (ofTab: PageContext) => unchanging(actsPanel(ofTab, route.queue, link)) }
      : {}),
  }
  const known = tabs[route.tab] === undefined ? { ...route, tab: 'activity' as const } : route
  return queueView(context, known, { tabs, links: unchanging(end) })
}

function mayAct({ can }: LinkRights): boolean {
  return can.has('test') || can.has('check')
}

/** The page of a link that may not look: what it may do, without the state of the bot. */
function actsView(
  context: PageContext,
  queue: BotQueueName,
  link: LinkRights,
  end: HTMLElement,
): PageView {
  const { api, poll } = context
  const title = `Bot ${queue.botId}`
  poll(endPauseMs, async () => void (await api.call('getBot', { id: queue.botId })))
  const heading = element('div', { class: 'heading' }, element('h1', {}, title))
  return {
    title,
    root: element('div', {}, end, heading, actsPanel(context, queue, link)),
  }
}

function actsPanel(context: PageContext, queue: BotQueueName, { can }: LinkRights): HTMLElement {
  return element(
    'div',
    {},
    can.has('test') ? testPanel(context, queue, can.has('look')) : undefined,
    can.has('check') ? checkPanel(context, queue) : undefined,
  )
}

/** @param maySee - whether the link shows what becomes of the update */
function testPanel({ api, poll }: PageContext, queue: BotQueueName, maySee: boolean): HTMLElement {
  const result = statusLine('')
  const watched = watchedUpdate(queue, result.say)
  const push = async (): Promise<Message> => {
    watched.watch(undefined)
    const pushed = await api.call('pushTestUpdate', ofQueue(queue, {}))
    if (!('update_id' in pushed)) return 'Your bot does not want messages: nothing was stored.'
    const { update_id: id } = pushed
    if (!maySee) return `Update ${id} is stored and waits for your bot.`
    watched.watch(id)
    return ['Update ', updateLink(queue, id), ' is stored and waits for your bot.']
  }
  if (maySee) {
    poll(pauseMs, async () => {
      if (!watched.isWaiting()) return
      const { attempts } = await api.call('listAttempts', ofQueue(queue, {}))
      watched.attempted(attempts)
    })
  }
  const send = buttonElement(actLabels.pushTestUpdate, () => result.run(push), { style: 'primary' })
  const about = 'A message that says that it is a test, from your bot in a chat with itself.'
  return cardElement(
    'Test update',
    element('p', { class: 'faint lead' }, about),
    element('p', { class: 'note' }, send),
    result.root,
  )
}

/** The author of an endpoint looks for what it answered to the last failed attempt, so that is at the top. */
function ownActivity(context: PageContext, { queue }: BotRoute): TabPart {
  const answer = answerPanel(context, queue)
  const activity = activityTab(context, queue, answer.show)
  return { ...activity, root: element('div', {}, answer.root, activity.root) }
}

function answerPanel(
  { clock }: PageContext,
  queue: BotQueueName,
): PagePart<readonly AttemptShape[]> {
  const place = element('div')
  const root = cardElement('What your endpoint answered to the last failed attempt', place)
  root.hidden = true
  let shown: string | undefined
  const show = (attempts: readonly AttemptShape[]): void => {
    const failed = attempts.find(({ error }) => error !== null)
    const text = JSON.stringify(failed)
    root.hidden = failed === undefined
    if (failed === undefined || text === shown) return
    shown = text
    const { error, response_body: body, status, time, update_id: id } = failed
    place.replaceChildren(
      element(
        'p',
        {},
        badgeElement(status === null ? 'failed' : `${status}`, 'failing'),
        ` ${error ?? ''}, update `,
        updateLink(queue, id) ?? '',
        ', ',
        timeElement(clock, time),
      ),
      body === null || body === ''
        ? ''
        : element('pre', { tabindex: 0, 'aria-label': 'Answer' }, body),
    )
  }
  return { root, show }
}
