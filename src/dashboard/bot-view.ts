/**
 * The page of one queue of one bot: how it is, in one sentence, and a tab for each thing that an operator does with it. The tabs
 * are parts of one view, so the sentence stays while the reader changes between them, and only the tab that is shown asks the
 * server.
 */
import { isTrouble } from './api-client.ts'
import { attemptsPanel } from './attempts-panel.ts'
import { badge } from './badge.ts'
import { botSentence } from './bot-sentence.ts'
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { deadLettersPanel } from './dead-letters-panel.ts'
import { checkPanel } from './check-panel.ts'
import { buttonElement, buttonsElement, element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { formatAge, formatBytes, formatCount } from './format.ts'
import { historyPanel } from './history-panel.ts'
import type { PageContext, PageView } from './page-context.ts'
import type { PagePart } from './page-part.ts'
import { type BotTab, botHash, botTabs, type PageRoute } from './page-route.ts'
import { pendingCurve } from './pending-curve.ts'
import { pushPanel } from './push-panel.ts'
import { actOnQueue, type QueueAction } from './queue-actions.ts'
import { settingsPanel } from './settings-panel.ts'
import type { BotShape, QueueShape } from './shapes.ts'
import { statusLine } from './status-line.ts'
import { tailPanel } from './tail-panel.ts'
import { timeElement } from './time-element.ts'
import { updatePanel } from './update-panel.ts'
import { updatesPanel } from './updates-panel.ts'

const pauseMs = 1_000

/** A tab, and what it does with the state of the bot. */
type TabPart = PagePart<BotShape>

type BotRoute = Extract<PageRoute, { readonly page: 'bot' }>

export function botView(context: PageContext, first: BotRoute): PageView {
  const { queue } = first
  const { api, poll } = context
  const title = `Bot ${queue.botId}${queue.isTest ? ', /test/ queue' : ''}`
  const heading = element('h1', {}, title, element('span', { class: 'faint' }))
  const state = stateHead(context, queue, () => hurry())
  const tabs = tabLinks(queue)
  const place = element('div', {}, element('div', { class: 'skeleton' }))
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
      tab = { ...tabMakers[wanted.tab](ofTab, wanted), of: wanted, end }
      place.replaceChildren(tab.root)
      tabs.show(wanted.tab)
    }
    tab.show(bot)
  }
  const hurry = poll(pauseMs, async () => {
    try {
      bot = await api.call('getBot', { id: queue.botId })
      showNames(heading, queue, bot)
      state.show(bot)
      sameName.show(bot)
      tabs.root.hidden = false
      showTab()
    } catch (error) {
      // The page says that the server is in trouble; what was read before stays.
      if (!isTrouble(error) || bot === undefined) state.fail(error)
      if (!isTrouble(error) && bot === undefined) {
        tabs.root.hidden = true
        place.replaceChildren()
      }
    }
  })
  const sameName = sameNameNote(context)
  const root = element('div', {}, linksOf(queue, sameName.root), state.root, tabs.root, place)
  state.root.prepend(element('div', { class: 'heading' }, heading, state.actions))
  return {
    title,
    root,
    follow(route) {
      if (route.page !== 'bot') return false
      const isSame = route.queue.botId === queue.botId && route.queue.isTest === queue.isTest
      if (isSame) {
        wanted = route
        showTab()
      }
      return isSame
    },
  }
}

const tabMakers: Readonly<Record<BotTab, (context: PageContext, route: BotRoute) => TabPart>> = {
  activity: (context, { queue }) => activityTab(context, queue),
  updates: (context, { queue, updateId }) =>
    unchanging(
      updateId === undefined ? updatesPanel(context, queue) : updatePanel(context, queue, updateId),
    ),
  'dead-letters': (context, { queue }) => unchanging(deadLettersPanel(context, queue)),
  try: (context, { queue }) => tryTab(context, queue),
  settings: (context, { queue }) => settingsPanel(context, queue),
}

function unchanging(root: HTMLElement): TabPart {
  return { root, show: () => undefined }
}

function activityTab(context: PageContext, queue: BotQueueName): TabPart {
  const attempts = attemptsPanel(context, queue)
  const charts = historyPanel(context, queue)
  const root = element(
    'div',
    { class: 'activity' },
    element('div', { class: 'row' }, ...charts),
    attempts.root,
  )
  const show = (bot: BotShape): void => {
    const { mode } = stateOf(bot, queue)
    for (const chart of charts) chart.hidden = mode !== 'webhook'
    attempts.show(mode)
  }
  return { root, show }
}

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
  check.hidden = !may('manage')
  return unchanging(element('div', {}, element('div', { class: 'pair' }, push.root, tail), check))
}

function stateOf(bot: BotShape, { isTest }: BotQueueName): QueueShape {
  return isTest ? bot.test : bot
}

function showNames(heading: HTMLElement, { isTest }: BotQueueName, bot: BotShape): void {
  const names = `@${bot.username}, ${bot.bot_id}${isTest ? ', /test/ queue' : ''}`
  const text = `${bot.first_name} ${names}`
  if (heading.textContent === text) return
  heading.replaceChildren(`${bot.first_name} `, element('span', { class: 'faint' }, names))
}

function linksOf(queue: BotQueueName, note: HTMLElement): HTMLElement {
  const { isTest } = queue
  const all = element('a', { href: '#/' }, 'Bots')
  const name = isTest ? 'the main queue' : 'the /test/ queue'
  const href = botHash({ ...queue, isTest: !isTest })
  return element('p', { class: 'crumbs' }, all, ' · ', element('a', { href }, `Show ${name}`), note)
}

function tabLinks(queue: BotQueueName): PagePart<BotTab> {
  const links = new Map(
    Object.entries(botTabs).map(([name, text]) => {
      const tab = Object.keys(botTabs).find((each): each is BotTab => each === name) ?? 'activity'
      return [tab, element('a', { href: botHash(queue, tab) }, text)] as const
    }),
  )
  const root = element('nav', { class: 'tabs', 'aria-label': 'Of this bot' }, ...links.values())
  const show = (shown: BotTab): void => {
    for (const [tab, link] of links) {
      if (tab === shown) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }
  return { root, show }
}

interface StateHead extends PagePart<BotShape> {
  readonly actions: HTMLElement
  readonly fail: (error: unknown) => void
}

/** @param onActed - the state may be another one now */
function stateHead(context: PageContext, queue: BotQueueName, onActed: () => void): StateHead {
  const { clock, may } = context
  const word = badge()
  const sentence = element('p', { class: 'lead-sentence' })
  const more = element('p', { class: 'faint' })
  const verdict = element(
    'div',
    { class: 'verdict' },
    word.root,
    element('div', {}, sentence, more),
  )
  /** The sentence counts seconds; a screen reader hears only its word. */
  const heard = statusLine('hidden-label')
  const figures = figureTiles(context, queue)
  const act = (action: QueueAction): void => void actOnQueue(context, queue, action).then(onActed)
  let isPaused = false
  const pause = buttonElement('Pause deliveries', () => act(isPaused ? 'resumeBot' : 'pauseBot'))
  const retry = buttonElement('Deliver now', () => act('retryBot'), { style: 'primary' })
  for (const shown of [pause, retry, word.root]) shown.hidden = true
  let isKnown = false

  const show = (bot: BotShape): void => {
    const state = stateOf(bot, queue)
    isPaused = state.paused
    pause.hidden = !may('manage')
    pause.className = isPaused ? 'primary' : ''
    retry.hidden = !may('manage') || isPaused || state.parked_keys === 0
    setElementText(pause, isPaused ? 'Resume deliveries' : 'Pause deliveries')
    word.root.hidden = false
    word.show(state.health ?? state.mode)
    const said = botSentence(state, clock.nowMs() / 1_000)
    sentence.className = 'lead-sentence'
    setElementText(sentence, said.lead)
    setElementText(more, said.more)
    verdict.title = `${said.lead} ${said.more}`
    heard.say(state.health ?? 'polling')
    isKnown = true
    figures.root.hidden = false
    figures.show(state)
  }
  const fail = (error: unknown): void => {
    figures.root.hidden = !isKnown
    sentence.className = 'error'
    setElementText(sentence, errorText(error))
    setElementText(more, '')
  }
  const root = element(
    'div',
    {},
    element('section', { class: 'card' }, verdict, heard.root),
    figures.root,
  )
  const actions = buttonsElement(pause, retry)
  // What is below must not move when they appear.
  if (may('manage')) actions.classList.add('awaited')
  return { root, actions, show, fail }
}

/** What waits, and what failed last. */
function figureTiles(context: PageContext, queue: BotQueueName): PagePart<QueueShape> {
  const { clock } = context
  const pending = element('dd', {}, '–')
  const oldest = element('dd', {}, '–')
  const letters = element('a', { href: botHash(queue, 'dead-letters') }, '–')
  const taken = element('dd', { class: 'small' }, '–')
  const failed = element('dd', {}, '–')
  const curve = pendingCurve(context, queue)
  const failure = tile('Last failure', failed)
  const root = element(
    'dl',
    { class: 'tiles' },
    tile('Pending', pending),
    tile('Oldest', oldest),
    tile('Dead letters', element('dd', {}, letters)),
    tile('Takes updates by', taken),
    failure,
    tile('Pending, lately', element('dd', {}, curve.root)),
  )
  const show = (state: QueueShape): void => {
    const bytes = element('span', { class: 'small faint' }, ` ${formatBytes(state.pending_bytes)}`)
    pending.replaceChildren(formatCount(state.pending), bytes)
    setElementText(oldest, formatAge(state.oldest_age))
    setElementText(letters, formatCount(state.dead_letters))
    setElementText(taken, takenText(state))
    taken.title = takenText(state)
    failed.replaceChildren(timeElement(clock, state.last_error_date, 'none'))
    failure.title = state.last_error_message ?? ''
    curve.show(state.pending)
  }
  return { root, show }
}

function tile(title: string, ...content: readonly HTMLElement[]): HTMLElement {
  return element('div', { class: 'tile' }, element('dt', {}, title), ...content)
}

function takenText({ mode, webhook_host: host, waiting_poll: isWaiting }: QueueShape): string {
  if (mode === 'webhook') return host ?? 'webhook'
  return isWaiting ? 'a poll that waits' : 'polling'
}

/** The server takes a username that another bot has. Looks for one once. */
function sameNameNote({ api, seesAll }: PageContext): PagePart<BotShape> {
  const root = element('span', { class: 'degraded', hidden: true })
  let hasLooked = !seesAll
  const look = async ({ bot_id: id, username }: BotShape): Promise<void> => {
    const { bots } = await api.call('listBots', { query: { prefix: username, limit: 1_000 } })
    const others = bots.filter(
      (each) => each.bot_id !== id && each.username.toLowerCase() === username.toLowerCase(),
    )
    root.hidden = others.length === 0
    const ids = others.slice(0, 10).map((each) => each.bot_id)
    const text = `The username is also that of bot ${ids.join(', ')}.`
    setElementText(root, ` · ${text}`)
    root.title = text
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
