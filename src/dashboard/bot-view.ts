/** The page of one queue of one bot: its state, and everything that an operator does with it. */
import { isTrouble } from './api-client.ts'
import { attemptsPanel } from './attempts-panel.ts'
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { deadLettersPanel } from './dead-letters-panel.ts'
import { buttonElement, cardElement, element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { factList, type Facts } from './fact-list.ts'
import { formatAge, formatBytes, formatCount, formatTime } from './format.ts'
import { historyPanel } from './history-panel.ts'
import { limitPanel } from './limit-panel.ts'
import type { PageContext, PageView } from './page-context.ts'
import type { PagePart } from './page-part.ts'
import { pushPanel } from './push-panel.ts'
import type { BotShape, QueueShape } from './shapes.ts'
import { statusLine } from './status-line.ts'
import { tailPanel } from './tail-panel.ts'

const pauseMs = 1_000

export function botView(context: PageContext, queue: BotQueueName): PageView {
  const { api, may, poll } = context
  const title = `Bot ${queue.botId}${queue.isTest ? ', /test/ queue' : ''}`
  const heading = element('h1', {}, title)
  const state = stateCard(context, queue, () => hurry())
  const charts = historyPanel(context, queue)
  const attempts = attemptsPanel()
  const deadLetters = deadLettersPanel(context, queue)
  const push = pushPanel(context, queue)
  const tail = tailPanel(context, queue, push)
  /** Whether the state of the bot was read. */
  let isKnown = false
  /** A bot that polls has no deliveries. Nothing can be done with one that is not known. */
  const showMode = (hasWebhook: boolean): void => {
    for (const root of [deadLetters, tail]) root.hidden = !isKnown
    push.root.hidden = !isKnown || !may('push')
    for (const root of [...charts, attempts.root]) root.hidden = !hasWebhook
  }
  showMode(false)

  const hurry = poll(pauseMs, async () => {
    try {
      const [bot, tried] = await Promise.all([
        api.call('getBot', { id: queue.botId }),
        api.call('listAttempts', ofQueue(queue, {})),
      ])
      const name = `${bot.first_name} (@${bot.username}), ${bot.bot_id}`
      setElementText(heading, queue.isTest ? `${name}, /test/ queue` : name)
      state.show(bot)
      isKnown = true
      showMode((queue.isTest ? bot.test : bot).mode === 'webhook')
      attempts.show(tried.attempts)
      push.attempted(tried.attempts)
    } catch (error) {
      // The header of the page says that the server is in trouble; what was read before stays.
      if (!isTrouble(error) || !isKnown) state.fail(error)
    }
  })
  const root = element(
    'div',
    {},
    linksOf(queue),
    heading,
    element('div', { class: 'row' }, state.root, ...charts),
    attempts.root,
    deadLetters,
    element('div', { class: 'pair' }, push.root, tail),
  )
  return { title, root }
}

function linksOf({ botId, isTest }: BotQueueName): HTMLElement {
  const all = element('a', { href: '#/' }, 'All bots')
  const [path, name] = isTest ? ['', 'the main queue'] : ['/test', 'the /test/ queue']
  const other = element('a', { href: `#/bots/${botId}${path}` }, `Show ${name}`)
  return element('p', {}, all, ' · ', other)
}

interface StateCard extends PagePart<BotShape> {
  readonly fail: (error: unknown) => void
}

/** @param onActed - the state may be another one now */
function stateCard(context: PageContext, queue: BotQueueName, onActed: () => void): StateCard {
  const { api, may } = context
  const health = element('p')
  /** The sentence of the health counts seconds; a screen reader hears only its word. */
  const heard = statusLine('hidden-label')
  const result = statusLine('error note', 'alert')
  const facts = factList()
  const sameName = sameNameNote(context)
  const limit = limitPanel(context, queue)
  const post = (id: 'pauseBot' | 'resumeBot' | 'retryBot'): void =>
    result.run(async () => {
      await api.call(id, ofQueue(queue, {})).finally(onActed)
      return ''
    })
  let isPaused = false
  const pause = buttonElement('Pause deliveries', () => post(isPaused ? 'resumeBot' : 'pauseBot'))
  const retry = buttonElement('Retry now', () => post('retryBot'))
  for (const shown of [pause, retry, limit]) shown.hidden = true

  const show = (bot: BotShape): void => {
    const state = queue.isTest ? bot.test : bot
    sameName.show(bot)
    const hasWebhook = state.mode === 'webhook'
    isPaused = state.paused
    limit.hidden = !hasWebhook
    pause.hidden = !may('manage') || (!hasWebhook && !isPaused)
    retry.hidden = !may('manage') || isPaused || state.parked_keys === 0
    setElementText(pause, isPaused ? 'Resume deliveries' : 'Pause deliveries')
    health.className = state.health ?? 'faint'
    setElementText(health, `${state.health ?? state.mode}: ${state.health_reason}`)
    heard.say(state.health ?? 'polling')
    facts.show(factsOf(state))
  }
  const fail = (error: unknown): void => {
    health.className = 'error'
    setElementText(health, errorText(error))
  }
  const actions = element('p', { class: 'note' }, pause, ' ', retry)
  const above = [health, heard.root, sameName.root, facts.root]
  return { root: cardElement('State', ...above, actions, result.root, limit), show, fail }
}

/** The server takes a username that another bot has. Looks for one once. */
function sameNameNote({ api, seesAll }: PageContext): PagePart<BotShape> {
  const root = element('p', { class: 'degraded', hidden: true })
  let hasLooked = !seesAll
  const look = async ({ bot_id: id, username }: BotShape): Promise<void> => {
    const { bots } = await api.call('listBots', { query: { prefix: username, limit: 1_000 } })
    const others = bots.filter(
      (each) => each.bot_id !== id && each.username.toLowerCase() === username.toLowerCase(),
    )
    root.hidden = others.length === 0
    const ids = others.slice(0, 10).map((each) => each.bot_id)
    setElementText(root, `The username is also that of bot ${ids.join(', ')}.`)
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

function factsOf(queue: QueueShape): Facts {
  const common = [
    ['Mode', queue.mode],
    ['Pending', `${formatCount(queue.pending)} (${formatBytes(queue.pending_bytes)})`],
    ['Oldest', formatAge(queue.oldest_age)],
    ['Dead letters', formatCount(queue.dead_letters)],
  ] as const
  if (queue.mode === 'polling')
    return [...common, ['Poll waits', queue.waiting_poll ? 'yes' : 'no']]
  return [
    ...common,
    ['Host', queue.webhook_host ?? '–'],
    ['Connections, at most', formatCount(queue.max_connections)],
    ['Keys that wait for a retry', formatCount(queue.parked_keys)],
    ['Next attempt', formatTime(queue.next_attempt)],
    ['Last error', queue.last_error_message ?? '–'],
  ]
}
