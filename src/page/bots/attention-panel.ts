/**
 * The bots in trouble, by what causes it, the worst first: of each cause what is wrong, then the facts, how many updates wait, and
 * what helps. The panel is short however many bots fail: bots with one cause are one line, and the causes after the first few are
 * behind another one.
 */
import { buttonElement, element, setElementText } from '../elements/element.ts'
import { formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import { arriving, type Waiting, waitingFor } from '../elements/waiting.ts'
import { type TroubleCause, troubleCauses, type TroubledBots } from './trouble-causes.ts'
import { type ShowBots, type TroubleRow, troubleRow } from './trouble-row.ts'
import {
  troubledOf,
  troubledStates,
  type TroubleSums,
  troubleSumsText,
  wellText,
} from './trouble-sums.ts'

/** Sentences need not be younger. */
const pauseMs = 3_000
/** Chosen: what a reader can act on at once, with the list of all bots in sight. */
const shownMax = 3
/** Chosen: a screen. The list of all bots has the others. */
const openMax = 20
/** So many bots of each state are looked at, those with the oldest updates. Chosen: as many as the list of all bots asks for. */
const readMax = 200

interface AttentionPanel extends PagePart<TroubleSums | undefined> {
  /** Stands in its place until the sums are known. */
  readonly waiting: Waiting
}

/**
 * Makes the panel, which shows the sums that it is told.
 *
 * @param onMore - the reader wants to see bots in the list
 */
export function attentionPanel(context: PageContext, onMore: ShowBots): AttentionPanel {
  const { api, poll } = context
  const waiting = waitingFor()
  const well = element('p', { class: 'well', hidden: true })
  const more = element('div', { class: 'buttons' })
  const title = element('h2', {}, 'Needs attention')
  const causes = causeList(context, { onMore, onActed: () => hurry() })
  let sums: TroubleSums | undefined

  const show = (found: readonly TroubleCause[], shown: TroubleSums): void => {
    waiting.done()
    arrived()
    const count = troubledOf(shown)
    well.hidden = count > 0
    setElementText(well, wellText(shown))
    const isWell = count === 0 && (shown.conflicts ?? 0) === 0
    setElementText(title, isWell ? 'Nothing needs attention' : 'Needs attention')
    causes.show(found)
    showSums(more, shown, onMore)
  }
  const hurry = poll(
    pauseMs,
    async () => {
      // What is shown together was counted together.
      const asked = sums
      if (asked !== undefined) show(troubleCauses(await troubledBots(api, asked)), asked)
    },
    waiting,
  )
  const top = element('div', { class: 'heading' }, title, more)
  const root = element('section', { class: 'card' }, top, well, waiting.root, causes.root)
  const arrived = arriving(context, root)
  return {
    root,
    waiting,
    show(now) {
      const isNews = textOf(now) !== textOf(sums)
      sums = now
      // An older server knows no sums.
      root.hidden = now === undefined
      if (now === undefined) arrived()
      else if (isNews) hurry()
    },
  }
}

function textOf(sums: TroubleSums | undefined): string | undefined {
  return sums && troubleSumsText(sums)
}

/** Offers the states that have bots. */
function showSums(more: HTMLElement, { health }: TroubleSums, onMore: ShowBots): void {
  const states = troubledStates({ health })
  const texts = states.map((state) => `${formatCount(health[state])} ${state}`)
  if (more.textContent === texts.join('')) return
  more.replaceChildren(
    ...states.map((state, nth) =>
      buttonElement(texts[nth] ?? '', () => onMore(state), {
        of: 'in the list',
        style: 'quiet small',
      }),
    ),
  )
}

interface CauseListener {
  readonly onMore: ShowBots
  readonly onActed: () => void
}

function causeList(
  context: PageContext,
  listener: CauseListener,
): PagePart<readonly TroubleCause[]> {
  const rows = new Map<string, TroubleRow>()
  const list = element('ul', { class: 'attention' })
  let causes: readonly TroubleCause[] = []
  let isOpen = false
  const rest = buttonElement('', () => {
    isOpen = !isOpen
    draw()
  })
  rest.className = 'link rest'
  rest.hidden = true

  const draw = (): void => {
    // A line that says that there is one more is as high as that one.
    const closedMax = causes.length === shownMax + 1 ? shownMax + 1 : shownMax
    const shown = causes.slice(0, isOpen ? openMax : closedMax)
    const keys = new Set(shown.map(({ key }) => key))
    for (const [key, row] of rows) {
      if (keys.has(key)) continue
      row.end()
      row.root.remove()
      rows.delete(key)
    }
    for (const [nth, cause] of shown.entries()) {
      const row = rows.get(cause.key) ?? troubleRow(context, cause, listener)
      rows.set(cause.key, row)
      if (list.children[nth] !== row.root) list.insertBefore(row.root, list.children[nth] ?? null)
      row.show(cause)
    }
    list.hidden = causes.length === 0
    rest.hidden = causes.length <= closedMax
    rest.setAttribute('aria-expanded', `${isOpen}`)
    setElementText(rest, isOpen ? fewerText(causes.length) : restText(causes.slice(shownMax)))
  }
  const show = (now: readonly TroubleCause[]): void => {
    causes = now
    draw()
  }
  return { root: element('div', { class: 'causes' }, list, rest), show }
}

/** For example `Show 4 more causes, of 9 bots`. */
function restText(causes: readonly TroubleCause[]): string {
  const bots = causes.reduce((sum, cause) => sum + cause.bots.length, 0)
  return `Show ${formatCount(causes.length)} more causes, of ${formatCount(bots)} bots`
}

/** The list of all bots has those of the causes that are not shown. */
function fewerText(count: number): string {
  return count <= openMax ? 'Show fewer' : `Show fewer; ${formatCount(count - openMax)} more causes`
}

/** Returns the bots of the states that the sums say to have some. */
function troubledBots(
  api: PageContext['api'],
  { health }: TroubleSums,
): Promise<readonly TroubledBots[]> {
  return Promise.all(
    troubledStates({ health }).map(async (state) => {
      const query = { state, sort: 'oldest_age', limit: readMax, details: true } as const
      const { bots } = await api.call('listBots', { query })
      return { state, bots, isCut: bots.length >= readMax }
    }),
  )
}
