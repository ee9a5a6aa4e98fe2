/** The head of the page of a queue: how it is, in one sentence, what waits and what failed last, and the acts on its deliveries. */
import { actLabels } from '../frame/act-labels.ts'
import { badge, linkTo, type PagePart, showOldest, timeElement } from './page-part.ts'
import { botSentence } from '../bots/bot-sentence.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { buttonElement, buttonsElement, element, setElementText } from './element.ts'
import { errorText, statusLine } from './messages.ts'
import { formatBytes, formatCount } from './format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { pendingCurve } from '../bot/pending-curve.ts'
import type { BotShape, QueueShape } from '../frame/shapes.ts'

export interface StateHead extends PagePart<BotShape> {
  readonly actions: HTMLElement
  /** Shows all of it, or one line. */
  readonly showFull: (isFull: boolean) => void
  readonly fail: (error: unknown) => void
}

/**
 * Makes the head of the page of a queue.
 *
 * @param onActed - the state may be another one now
 */
export function stateHead(
  context: PageContext,
  queue: BotQueueName,
  onActed: () => void,
): StateHead {
  const { clock, may } = context
  const word = badge()
  const sentence = element('p', { class: 'lead-sentence' })
  const more = element('p', { class: 'faint' })
  const verdict = element(
    'div',
    { class: 'verdict' },
    word.root,
    element('div', {}, sentence, more),
    element('a', { href: botHash(queue), class: 'to-full' }, 'Activity'),
  )
  /** The sentence counts seconds; a screen reader hears only its word. */
  const heard = statusLine('hidden-label')
  const figures = figureTiles(context, queue)
  const act = (action: QueueAction): void => void actOnQueue(context, queue, action).then(onActed)
  let isPaused = false
  const pause = buttonElement(actLabels.pauseBot, () => act(isPaused ? 'resumeBot' : 'pauseBot'))
  const retry = buttonElement(actLabels.retryBot, () => act('retryBot'), { style: 'primary' })
  for (const shown of [pause, retry, word.root]) shown.hidden = true
  let isKnown = false

  const show = (bot: BotShape): void => {
    const state = stateOf(bot, queue)
    isPaused = state.paused
    // A paused queue can be resumed, whatever it has become since.
    pause.hidden = !may('manage') || (state.mode !== 'webhook' && !isPaused)
    pause.className = isPaused ? 'primary' : ''
    retry.hidden = !may('manage') || isPaused || state.parked_keys === 0
    setElementText(pause, isPaused ? actLabels.resumeBot : actLabels.pauseBot)
    word.root.hidden = false
    word.show(state.health ?? state.mode)
    const spoken = botSentence(state, clock.nowMs() / 1_000)
    sentence.className = spoken.isLate === true ? 'lead-sentence degraded' : 'lead-sentence'
    setElementText(sentence, spoken.lead)
    // It may be cut.
    sentence.title = spoken.lead
    setElementText(more, spoken.more)
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
    { class: 'bot-head' },
    element('section', { class: 'card' }, verdict, heard.root),
    figures.root,
  )
  const showFull = (isFull: boolean): void => {
    root.classList.toggle('brief', !isFull)
  }
  const actions = buttonsElement(pause, retry)
  // What is below must not move when they appear.
  if (may('manage')) actions.classList.add('awaited')
  return { root, actions, showFull, show, fail }
}

/** What waits, and what failed last. */
function figureTiles(context: PageContext, queue: BotQueueName): PagePart<QueueShape> {
  const { clock } = context
  const pending = element('dd', {}, '–')
  const oldest = element('dd', {}, '–')
  const letters = element('a', {}, '–')
  const expired = element('dd', {}, '–')
  const taken = element('dd', { class: 'small' }, '–')
  const failed = element('dd', {}, '–')
  const curve = pendingCurve(context, queue)
  const failure = tile('Last failure', failed)
  const root = element(
    'dl',
    { class: 'tiles', tabindex: 0 },
    tile('Pending', pending),
    tile('Longest wait', oldest),
    tile('Dead letters', element('dd', {}, letters)),
    tile('Expired since start', expired),
    tile('Goes to', taken),
    failure,
    tile('Pending, last hour', element('dd', {}, curve.root)),
  )
  const show = (state: QueueShape): void => {
    const bytes = element('span', { class: 'small faint' }, ` ${formatBytes(state.pending_bytes)}`)
    pending.replaceChildren(formatCount(state.pending), bytes)
    showOldest(oldest, state.oldest_age)
    setElementText(letters, formatCount(state.dead_letters))
    linkTo(letters, state.dead_letters > 0 ? botHash(queue, 'dead-letters') : undefined)
    setElementText(expired, formatCount(state.deliveries.expired))
    showHost(taken, takenText(state))
    failed.replaceChildren(timeElement(clock, state.last_error_date, 'none'))
    failure.title = state.last_error_message ?? ''
    curve.show(state.pending)
  }
  return { root, show }
}

function tile(title: string, ...content: readonly HTMLElement[]): HTMLElement {
  return element('div', { class: 'tile' }, element('dt', {}, title), ...content)
}

/** A long name breaks after its dots, and not within a word. */
function showHost(place: HTMLElement, host: string): void {
  if (place.textContent === host) return
  const parts = host.split(/(?<=[.:])/)
  place.replaceChildren(...parts.flatMap((part) => [part, element('wbr')]))
}

function takenText({ mode, webhook_host: host, waiting_poll: isWaiting }: QueueShape): string {
  if (mode === 'webhook') return host ?? 'webhook'
  return isWaiting ? 'a poll that waits' : 'polling'
}

/** Returns the state of one queue of a bot. */
export function stateOf(bot: BotShape, { isTest }: BotQueueName): QueueShape {
  return isTest ? bot.test : bot
}

/** What an operator does to the deliveries of a queue, wherever the page offers it. A retry may be of one ordering key. */
export type QueueAction =
  | 'pauseBot'
  | 'resumeBot'
  | 'retryBot'
  | { readonly retryBot: string | undefined }

/** Acts, and says so; a pause and its end can be taken back. */
export async function actOnQueue(
  { api, toast }: PageContext,
  queue: BotQueueName,
  action: QueueAction,
): Promise<void> {
  const input = ofQueue(queue, {})
  try {
    const name = await nameOf(api, queue)
    if (typeof action === 'object' || action === 'retryBot') {
      const key = typeof action === 'object' ? action.retryBot : undefined
      const retried = await api.call('retryBot', ofQueue(queue, { ordering_key: key }))
      const { retried_keys: keys } = retried
      toast(
        `What waits of ${formatCount(keys)} ${keys === 1 ? 'key' : 'keys'} of ${name} is delivered now.`,
      )
      return
    }
    const [text, opposite] =
      action === 'pauseBot'
        ? (['are paused', 'resumeBot'] as const)
        : (['are resumed', 'pauseBot'] as const)
    await api.call(action, input)
    toast(`Deliveries of ${name} ${text}.`, () => api.call(opposite, input))
  } catch (error) {
    toast(errorText(error))
  }
}

/** Says which bot it is as people do; by its id, if nothing more can be read. */
async function nameOf(api: PageContext['api'], { botId, isTest }: BotQueueName): Promise<string> {
  const bot = await api.call('getBot', { id: botId }).catch(() => undefined)
  const name = bot === undefined ? `bot ${botId}` : `${bot.first_name} @${bot.username}`
  return isTest ? `${name}, /test/` : name
}
