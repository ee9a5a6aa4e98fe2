/** A cause of trouble as a line: what is wrong, with which bots, how many updates wait, and what helps. */
import { actLabels } from '../frame/act-labels.ts'
import { badge, type PagePart } from '../elements/page-part.ts'
import {
  buttonElement,
  buttonsElement,
  type Child,
  element,
  setElementText,
} from '../elements/element.ts'
import { formatAge, formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { pendingCurve } from '../bot/pending-curve.ts'
import { actOnQueue, type QueueAction } from '../elements/state-head.ts'
import type { ListedBotShape } from '../frame/shapes.ts'
import type { TroubleCause } from './trouble-causes.ts'
import type { Trouble } from './trouble-sums.ts'

/** Shows bots in a state in the list of all, and of these only those that a search finds. */
export type ShowBots = (state: Trouble, search?: string) => void

export interface TroubleRow extends PagePart<TroubleCause> {
  readonly end: () => void
}

interface RowListener {
  readonly onMore: ShowBots
  readonly onActed: () => void
}

/** So many bots of a cause are named. Chosen: they fit into a line. */
const namedMax = 3

export function troubleRow(
  context: PageContext,
  cause: TroubleCause,
  listener: RowListener,
): TroubleRow {
  const [first, ...others] = cause.bots
  return first === undefined || others.length > 0
    ? rowOfBots(listener)
    : rowOfBot(context, first, listener)
}

interface RowParts {
  readonly curve: HTMLElement
  readonly buttons: HTMLElement
  /** Shows what the cause is about. */
  readonly showWho: (place: HTMLElement, cause: TroubleCause) => void
}

/** What the lines of one and of many bots have in common. */
function causeRow({ curve, buttons, showWho }: RowParts): PagePart<TroubleCause> {
  const state = badge()
  const lead = element('strong')
  const where = element('span', { class: 'trouble' })
  const facts = element('span')
  const who = element('span')
  const waits = element('span')
  const age = element('small')
  const root = element(
    'li',
    {},
    element('div', {}, state.root),
    element(
      'div',
      { class: 'what' },
      element('div', {}, lead, where),
      element('div', { class: 'trouble' }, who, facts),
    ),
    element('div', { class: 'waits' }, waits, age),
    curve,
    buttons,
  )
  const show = (cause: TroubleCause): void => {
    const { bots } = cause
    state.show(cause.state)
    setElementText(lead, cause.lead)
    setElementText(where, cause.host === undefined ? '' : ` ${cause.host}`)
    setElementText(facts, factsText(cause))
    showWho(who, cause)
    const count = bots.reduce((sum, { pending }) => sum + (pending ?? 0), 0)
    setElementText(waits, `${formatCount(count)} ${count === 1 ? 'waits' : 'wait'}`)
    const oldest = Math.max(...bots.map((bot) => bot.oldest_age ?? -1))
    setElementText(age, oldest < 0 ? '' : `for ${formatAge(oldest)}`)
  }
  return { root, show }
}

function factsText({ bots, more }: TroubleCause): string {
  return bots.length > 1 || more === '' ? '' : ` · ${more}`
}

function rowOfBot(
  context: PageContext,
  { bot_id: id, first_name: name, username }: ListedBotShape,
  { onActed }: RowListener,
): TroubleRow {
  const { may } = context
  const { context: ofRow, end } = context.part()
  const queue = { botId: String(id), isTest: false }
  const curve = pendingCurve(ofRow, queue)
  const act = (action: QueueAction) => () => void actOnQueue(context, queue, action).then(onActed)
  const deliver = buttonElement(actLabels.retryBot, act('retryBot'), { of: id })
  const pause = buttonElement('Pause', act('pauseBot'), { of: id, style: 'quiet small' })
  const row = causeRow({
    curve: curve.root,
    buttons: buttonsElement(deliver, pause),
    showWho(place) {
      if (place.childElementCount > 0) return
      const link = element('a', { href: botHash(queue), class: 'row-link' }, name)
      place.replaceChildren(link, ` @${username} · ${id}`)
    },
  })
  const show = (cause: TroubleCause): void => {
    row.show(cause)
    const [bot] = cause.bots
    const isWebhook = bot?.mode === 'webhook'
    deliver.hidden = !may('manage') || !isWebhook || (bot.next_attempt ?? null) === null
    // It hardly helps while the endpoint is down.
    deliver.className = cause.state === 'failing' ? 'quiet small' : 'small'
    pause.hidden = !may('manage') || !isWebhook
    curve.show(bot?.pending ?? 0)
  }
  return { root: row.root, show, end }
}

function rowOfBots({ onMore }: RowListener): TroubleRow {
  let now: TroubleCause | undefined
  const list = buttonElement('Show them', () => now && onMore(now.state, now.host), {
    style: 'quiet small',
  })
  const row = causeRow({
    curve: element('span'),
    buttons: buttonsElement(list),
    showWho: showNames,
  })
  const show = (cause: TroubleCause): void => {
    now = cause
    list.setAttribute('aria-label', `Show them: ${[cause.more, cause.host].join(' ')}`)
    row.show(cause)
  }
  return { root: row.root, show, end: () => undefined }
}

/** Names the first of the bots, and changes nothing while they are the same. */
function showNames(place: HTMLElement, { bots, more }: TroubleCause): void {
  const named = bots.slice(0, namedMax)
  const rest = bots.length - named.length
  const links = named.flatMap((bot, nth): readonly Child[] => {
    const href = botHash({ botId: `${bot.bot_id}`, isTest: false })
    return [nth === 0 ? ': ' : ', ', element('a', { href }, `@${bot.username}`)]
  })
  const made = element(
    'span',
    {},
    more,
    ...links,
    rest === 0 ? '' : ` and ${formatCount(rest)} more`,
  )
  if (made.textContent !== place.textContent) place.replaceChildren(...made.childNodes)
}
