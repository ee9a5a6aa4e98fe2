/**
 * The page of one queue of one bot: how it is, in one sentence, and a tab for each thing that its reader does with it. The tabs are
 * parts of one view, so the sentence stays while the reader changes between them, and only the tab that is shown asks the server.
 */
import { focusNamed } from '../frame/focus-query.ts'
import { isTrouble } from '../frame/api-client.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import { element } from '../elements/element.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import { type BotTab, botHash, botTabs, type PageRoute } from '../frame/page-route.ts'
import type { BotShape } from '../frame/shapes.ts'
import { type StateHead, stateHead } from '../elements/state-head.ts'
import { waitingFor } from '../elements/waiting.ts'

const pauseMs = 1_000

/** A tab, and what it does with the state of the bot. */
export type TabPart = PagePart<BotShape>

export type BotRoute = Extract<PageRoute, { readonly page: 'bot' }>

/** What makes each tab that the page has. */
export type TabMakers = {
  readonly [Tab in BotTab]?: (context: PageContext, route: BotRoute) => TabPart
}

export interface QueueViewParts {
  readonly tabs: TabMakers
  /** What is above the names of the bot. */
  readonly links: PagePart<BotShape>
}

/** Makes the view of a queue, at the tab of a route, which `tabs` has. */
export function queueView(
  context: PageContext,
  first: BotRoute,
  { tabs: tabMakers, links }: QueueViewParts,
): PageView {
  const [{ queue }, { api, poll }] = [first, context]
  const title = `Bot ${queue.botId}${queue.isTest ? ', /test/ queue' : ''}`
  const heading = element('h1', {}, title, element('span', { class: 'faint' }))
  const state = stateHead(context, queue, () => hurry())
  const tabs = tabLinks(queue, tabMakers, state)
  const waiting = waitingFor()
  const place = element('div', {}, waiting.root)
  tabs.show(first.tab)
  /** What was read last; a bot that is not known has no tabs. */
  let bot: BotShape | undefined
  let tab: (TabPart & { readonly of: BotRoute; readonly end: () => void }) | undefined
  let wanted = first

  const showTab = (): void => {
    if (bot === undefined) return
    if (tab?.of.tab !== wanted.tab || tab.of.updateId !== wanted.updateId) {
      tab?.end()
      const { context: ofTab, end } = context.part()
      const part = tabMakers[wanted.tab]?.(ofTab, wanted)
      if (part === undefined) return
      tab = { ...part, of: wanted, end }
      place.replaceChildren(tab.root)
      tabs.show(wanted.tab)
      focusNamed(place)
    }
    tab.show(bot)
  }
  const hurry = poll(
    pauseMs,
    async () => {
      try {
        bot = await api.call('getBot', { id: queue.botId })
        showNames(heading, queue, bot)
        state.show(bot)
        links.show(bot)
        tabs.root.hidden = false
        showTab()
      } catch (error) {
        // The page says that the server is in trouble; what was read before stays.
        if (!isTrouble(error) || bot === undefined) state.fail(error)
        if (!isTrouble(error) && bot === undefined) {
          tabs.root.hidden = true
          place.replaceChildren()
        }
        if (bot === undefined) throw error
      }
    },
    waiting,
  )
  const root = element('div', {}, links.root, state.root, tabs.root, place)
  state.root.prepend(element('div', { class: 'heading' }, heading, state.actions))
  return {
    get title() {
      return bot === undefined ? title : `${bot.first_name} – ${title}`
    },
    root,
    follow(route) {
      const isSame =
        route.page === 'bot' && isSameQueue(route.queue, queue) && route.tab in tabMakers
      if (isSame) {
        wanted = route
        showTab()
        focusNamed(place)
      }
      return isSame
    },
  }
}

function isSameQueue(one: BotQueueName, other: BotQueueName): boolean {
  return one.botId === other.botId && one.isTest === other.isTest
}

/** Makes a tab of what does not depend on the state of the bot. */
export function unchanging(root: HTMLElement): TabPart {
  return { root, show: () => undefined }
}

function showNames(heading: HTMLElement, { isTest }: BotQueueName, bot: BotShape): void {
  const names = `@${bot.username}, ${bot.bot_id}${isTest ? ', /test/ queue' : ''}`
  const text = `${bot.first_name} ${names}`
  if (heading.textContent === text) return
  heading.replaceChildren(`${bot.first_name} `, element('span', { class: 'faint' }, names))
}

/** The head is whole on the first tab only: the others need the room. */
function tabLinks(
  queue: BotQueueName,
  makers: TabMakers,
  head: Pick<StateHead, 'showFull'>,
): PagePart<BotTab> {
  const tabs = Object.keys(botTabs).filter((name): name is BotTab => name in makers)
  const links = new Map(
    tabs.map((tab) => [tab, element('a', { href: botHash(queue, tab) }, botTabs[tab])]),
  )
  const root = element('nav', { class: 'tabs', 'aria-label': 'Of this bot' }, ...links.values())
  const show = (shown: BotTab): void => {
    head.showFull(shown === 'activity')
    for (const [tab, link] of links) {
      if (tab === shown) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }
  return { root, show }
}
