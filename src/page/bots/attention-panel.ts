/**
 * The bots in trouble, the worst ones first: of each the cause first, then the facts, how many updates wait, and what helps.
 * The list is short however many bots fail: it asks for the bots of the worst states that the sums know, and for the sentence
 * of each.
 */
import { badge, type PagePart } from '../elements/page-part.ts'
import { troubleText } from './bot-sentence.ts'
import { botHash } from '../frame/page-route.ts'
import { buttonElement, buttonsElement, element, setElementText } from '../elements/element.ts'
import { formatAge, formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { type Waiting, waitingFor } from '../elements/waiting.ts'
import { pendingCurve } from '../bot/pending-curve.ts'
import { actOnQueue, type QueueAction } from '../elements/state-head.ts'
import { severities } from './bot-list.ts'
import type { BotShape, ListedBotShape, SummaryShape } from '../frame/shapes.ts'

/** Sentences need not be younger. */
const pauseMs = 3_000
/** Chosen: what a reader can act on at once. The table below has the others. */
const shownMax = 5
/** Chosen: what is below waits this long for a server that is slow, so that it does not jump. */
const arrivalMsMax = 2_000
type Trouble = (typeof severities)[number]

/** What the panel is told of all bots. */
export type AttentionSums = Pick<SummaryShape, 'bots' | 'paused' | 'dead_letters'> & {
  readonly health: Readonly<Record<Trouble, number>>
}

interface TroubledBot {
  readonly state: Trouble
  readonly listed: ListedBotShape
  /** Undefined if it could not be read. */
  readonly bot: BotShape | undefined
}

interface AttentionPanel extends PagePart<AttentionSums | undefined> {
  /** Stands in its place until the sums are known. */
  readonly waiting: Waiting
}

/**
 * Makes the panel, which shows the sums that it is told.
 *
 * @param onMore - the reader wants to see all bots in a state
 */
export function attentionPanel(
  context: PageContext,
  onMore: (state: Trouble) => void,
): AttentionPanel {
  const { api, atEnd, clock, poll } = context
  const rows = new Map<number, TroubleRow>()
  const list = element('ul', { class: 'attention' })
  const waiting = waitingFor()
  const well = element('p', { class: 'well', hidden: true })
  const more = element('div', { class: 'buttons' })
  const title = element('h2', {}, 'Needs attention')
  let summary: AttentionSums | undefined

  const show = (troubled: readonly TroubledBot[], sums: AttentionSums): void => {
    waiting.done()
    root.classList.remove('arriving')
    const ids = new Set(troubled.map(({ listed }) => listed.bot_id))
    for (const [id, row] of rows) {
      if (ids.has(id)) continue
      row.end()
      row.root.remove()
      rows.delete(id)
    }
    for (const [nth, each] of troubled.entries()) {
      const row = rows.get(each.listed.bot_id) ?? troubleRow(context, each, () => hurry())
      rows.set(each.listed.bot_id, row)
      if (list.children[nth] !== row.root) list.insertBefore(row.root, list.children[nth] ?? null)
      row.show(each)
    }
    const count = severities.reduce((sum, state) => sum + sums.health[state], 0)
    well.hidden = count > 0
    list.hidden = count === 0
    setElementText(well, wellText(sums))
    setElementText(title, count === 0 ? 'Nothing needs attention' : 'Needs attention')
    showMore(more, count > troubled.length ? sums : undefined, onMore)
  }
  const hurry = poll(
    pauseMs,
    async () => {
      if (summary === undefined) return
      const sums = summary
      show(await troubledBots(api, sums), sums)
    },
    waiting,
  )
  const top = element('div', { class: 'heading' }, title, more)
  const root = element('section', { class: 'card arriving' }, top, well, waiting.root, list)
  atEnd(clock.after(arrivalMsMax, () => root.classList.remove('arriving')))
  return {
    root,
    waiting,
    show(now) {
      const isFirst = summary === undefined
      summary = now
      // An older server knows no sums.
      root.hidden = now === undefined
      if (now === undefined) root.classList.remove('arriving')
      if (isFirst && now !== undefined) hurry()
    },
  }
}

/** Offers the states that have bots; without sums, nothing. */
function showMore(
  more: HTMLElement,
  sums: AttentionSums | undefined,
  onMore: (state: Trouble) => void,
): void {
  const states = sums === undefined ? [] : severities.filter((state) => sums.health[state] > 0)
  more.hidden = states.length === 0
  const texts = states.map((state) => `Show all ${formatCount(sums?.health[state])} ${state}`)
  if (more.textContent === texts.join('')) return
  more.replaceChildren(
    ...states.map((state, nth) =>
      buttonElement(texts[nth] ?? '', () => onMore(state), { style: 'quiet small' }),
    ),
  )
}

async function troubledBots(
  api: PageContext['api'],
  { health }: AttentionSums,
): Promise<readonly TroubledBot[]> {
  const found: Pick<TroubledBot, 'state' | 'listed'>[] = []
  for (const state of severities) {
    const limit = shownMax - found.length
    if (limit === 0 || health[state] === 0) continue
    const { bots } = await api.call('listBots', { query: { state, sort: 'oldest_age', limit } })
    found.push(...bots.map((listed) => ({ state, listed })))
  }
  return Promise.all(
    found.map(async (each) => {
      const bot = await api
        .call('getBot', { id: each.listed.bot_id })
        .catch((): undefined => undefined)
      return { ...each, bot }
    }),
  )
}

function wellText({ bots, paused, dead_letters: letters }: AttentionSums): string {
  if (bots === 0) return 'No bot is registered yet.'
  const which = bots === 1 ? 'The bot is well' : `All ${formatCount(bots)} bots are well`
  const notes = [
    ...(paused > 0 ? [`${formatCount(paused)} paused`] : []),
    ...(letters > 0 ? [`${formatCount(letters)} dead letters wait for a decision`] : []),
  ]
  return [which, ...notes].join(', ') + '.'
}

interface TroubleRow extends PagePart<TroubledBot> {
  readonly end: () => void
}

function troubleRow(
  context: PageContext,
  { listed }: TroubledBot,
  onActed: () => void,
): TroubleRow {
  const { may } = context
  const { context: ofRow, end } = context.part()
  const queue = { botId: String(listed.bot_id), isTest: false }
  const state = badge()
  const cause = element('strong')
  const facts = element('div', { class: 'trouble' })
  const curve = pendingCurve(ofRow, queue)
  const waits = element('span')
  const age = element('small')
  const act = (action: QueueAction) => () => void actOnQueue(context, queue, action).then(onActed)
  const deliver = buttonElement('Deliver now', act('retryBot'), {
    of: listed.bot_id,
    style: 'small',
  })
  const pause = buttonElement('Pause', act('pauseBot'), { of: listed.bot_id, style: 'quiet small' })
  const link = element('a', { href: botHash(queue), class: 'row-link' }, listed.first_name)
  const root = element(
    'li',
    {},
    element('div', {}, state.root),
    element(
      'div',
      { class: 'what' },
      cause,
      facts,
      element(
        'div',
        {},
        link,
        element('span', { class: 'faint' }, ` @${listed.username} · ${listed.bot_id}`),
      ),
    ),
    element('div', { class: 'waits' }, waits, age),
    curve.root,
    buttonsElement(deliver, pause),
  )
  const show = ({ state: word, listed: now, bot }: TroubledBot): void => {
    state.show(word)
    const trouble = troubleText({ health_reason: bot?.health_reason ?? null })
    setElementText(cause, trouble.lead)
    setElementText(facts, trouble.more)
    const count = now.pending ?? 0
    setElementText(waits, `${formatCount(count)} ${count === 1 ? 'waits' : 'wait'}`)
    setElementText(age, now.oldest_age === null ? '' : `for ${formatAge(now.oldest_age)}`)
    deliver.hidden = !may('manage') || (bot?.parked_keys ?? 0) === 0
    pause.hidden = !may('manage') || now.mode !== 'webhook'
    curve.show(count)
  }
  return { root, show, end }
}
