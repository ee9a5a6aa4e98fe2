/**
 * The table of bots. It has only the rows that are visible and a few around them; two empty rows take the place of all
 * others, so 100,000 bots cost as much as 50: with 52,000 on the server, the page took 4 MB and 1,070 nodes, also after 5,000 rows
 * were scrolled past, and a search answered within 0.5 s. Screen readers get the true number and position of each row.
 */
import { botColumns } from '../elements/bot-columns.ts'
import { badgeElement, timeElement } from '../elements/page-part.ts'
import { BotList, type BotListQuery, type RowRange, visibleRows } from './bot-list.ts'
import {
  type Column,
  emptyState,
  headElement,
  rowElement,
  tableElement,
} from '../elements/data-table.ts'
import { buttonElement, cardElement, element, scrollElement } from '../elements/element.ts'
import { formatAge, formatCount, isLate, shardsText } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { fillField, searchField } from '../elements/fields.ts'
import type { ListedBotShape } from '../frame/shapes.ts'
import { arriving } from '../elements/waiting.ts'
import { statusLine } from '../elements/messages.ts'

/** A table that moves every second cannot be read. */
const pauseMs = 3_000
/** As the style says, in a table and where each row is a card. */
const rowHeight = 36
const cardHeight = 100
const cardsMedia = matchMedia('(max-width: 820px)')
const heightMax = 580
/** A list is asked for this long after the last key, so that a word is one question. */
const typingPauseMs = 150
const states = [
  'failing',
  'degraded',
  'behind',
  'healthy',
  'unpolled',
  'conflict',
  'paused',
  'stuck',
  'idle',
] as const

interface BotColumn extends Column<ListedBotShape> {
  /** The order that its title asks for. */
  readonly sort?: BotListQuery['sort']
}

const [nameColumn, idColumn] = botColumns<ListedBotShape>()
const columnsOf = (clock: PageContext['clock']): readonly BotColumn[] => [
  nameColumn,
  { ...idColumn, sort: 'id' },
  { title: 'State', style: 'state', isPlain: true, cell: healthOf },
  { title: 'Pending', sort: 'pending', style: 'number', cell: (bot) => formatCount(bot.pending) },
  {
    title: 'Longest wait',
    sort: 'oldest_age',
    style: 'number',
    cell: oldestOf,
  },
  {
    title: 'Dead letters',
    sort: 'dead_letters',
    style: 'number',
    cell: (bot) => formatCount(bot.dead_letters),
  },
  {
    title: 'Last activity',
    style: 'number',
    cell: (bot) => timeElement(clock, lastActivityOf(bot)),
    hint: ({ mode }) => (mode === 'webhook' ? 'last delivery' : 'last poll'),
  },
]

/** The latest of what is known. */
function lastActivityOf(bot: ListedBotShape): number | undefined {
  const times = [bot.last_taken, bot.last_poll].filter((time) => typeof time === 'number')
  return times.length === 0 ? undefined : Math.max(...times)
}

export interface BotTable {
  readonly root: HTMLElement
  /** Shows only the bots in a state that a search finds, as if the reader had chosen them. */
  readonly select: (state: string, search?: string) => void
}

export function botTable(context: PageContext): BotTable {
  const table = filteredTable(context, () => arrived())
  const arrived = arriving(context, table.root)
  return table
}

/** @param onShown - called each time that the list was read */
function filteredTable(context: PageContext, onShown: () => void): BotTable {
  const { api, clock, poll, atEnd, query: asked, keepQuery } = context
  const columns = columnsOf(clock)
  const list = new BotList(api)
  const filter = filterFields(asked, { onTyped: () => typed(), onChosen: () => ask() })
  const { search, state, root: fields } = filter
  const count = statusLine('faint')
  const heads = columns.map((column) => headOf(column, sortBy))
  const rows = botRows(list, heads, columns)
  rows.root.hidden = true
  const none = element('div', { hidden: true })
  fields.append(count.root)
  let sort: BotListQuery['sort'] =
    columns.find((column) => column.sort === asked.get('sort'))?.sort ?? 'pending'
  let cancelTyping: (() => void) | undefined
  let isLoadingMore = false

  function typed(): void {
    cancelTyping?.()
    cancelTyping = clock.after(typingPauseMs, ask)
  }

  function sortBy(chosen: BotListQuery['sort']): void {
    sort = chosen
    showSort({ heads, columns, sort })
    ask()
  }

  function queryNow(): BotListQuery {
    return {
      // People write a username with the sign.
      search: search.value.trim().replace(/^@/, ''),
      state: states.find((each) => each === state.value) ?? '',
      sort,
    }
  }

  function ask(): void {
    rows.root.scrollTop = 0
    const query = queryNow()
    keepQuery({ ...query, sort: sort === 'pending' ? '' : sort })
    list.ask(query).then(show, () => count.say('The list could not be read.'))
  }

  function show(): void {
    rows.show()
    count.say(countText(list))
    rows.root.hidden = list.bots.length === 0
    showNone(none, list)
    onShown()
  }

  async function scrolled(): Promise<void> {
    const { end } = rows.show()
    if (end < list.bots.length || !list.hasMore || isLoadingMore) return
    isLoadingMore = true
    // If it fails, the next scroll tries again.
    await list.more().catch(() => undefined)
    isLoadingMore = false
    show()
  }

  showSort({ heads, columns, sort })
  rows.root.addEventListener('scroll', () => void scrolled())
  let isFirst = true
  poll(pauseMs, async () => {
    await (isFirst ? list.ask(queryNow()) : list.refresh())
    isFirst = false
    show()
  })
  atEnd(() => cancelTyping?.())
  const select = (wanted: string, words = ''): void => {
    state.value = wanted
    search.value = words
    state.focus()
    ask()
  }
  return { root: cardElement('All bots', fields, none, rows.root), select }
}

interface FilterFields {
  readonly root: HTMLElement
  readonly search: HTMLInputElement
  readonly state: HTMLSelectElement
}

/** Makes the fields of the filter, with what the address says. */
function filterFields(
  asked: URLSearchParams,
  { onTyped, onChosen }: { readonly onTyped: () => void; readonly onChosen: () => void },
): FilterFields {
  const { root: searched, input: search } = searchField({
    label: 'Search',
    placeholder: 'Id, username or name',
    value: asked.get('search'),
    oninput: onTyped,
  })
  const state = element(
    'select',
    { onchange: onChosen },
    element('option', { value: '' }, 'Any state'),
    ...states.map((each) => element('option', { value: each }, each)),
  )
  fillField(state, asked.get('state'))
  const labels = [searched, element('label', {}, 'State', state)]
  return { root: element('div', { class: 'controls' }, ...labels), search, state }
}

function headOf(
  column: BotColumn,
  sortBy: (sort: BotListQuery['sort']) => void,
): HTMLTableCellElement {
  const { title, sort } = column
  return headElement(column, sort && buttonElement(title, () => sortBy(sort)))
}

interface Sorted {
  readonly heads: readonly HTMLElement[]
  readonly columns: readonly BotColumn[]
  readonly sort: BotListQuery['sort']
}

function showSort({ heads, columns, sort }: Sorted): void {
  for (const [nth, column] of columns.entries()) {
    const direction = column.sort === 'id' ? 'ascending' : 'descending'
    if (column.sort === sort) heads[nth]?.setAttribute('aria-sort', direction)
    else heads[nth]?.removeAttribute('aria-sort')
  }
}

interface BotRows {
  readonly root: HTMLElement
  /** Shows the part of the list that is scrolled to. */
  show(): RowRange
}

function botRows(
  list: BotList,
  heads: readonly HTMLElement[],
  columns: readonly BotColumn[],
): BotRows {
  const [before, after] = [spacer(columns.length), spacer(columns.length)]
  const { root: table, body } = tableElement('Bots', heads)
  table.rows[0]?.setAttribute('aria-rowindex', '1')
  const root = scrollElement('Bots', table, 'scroll many')

  function show(): RowRange {
    const { bots } = list
    const { scrollTop, clientHeight } = root
    // Before it has rows, it is lower than the style lets it become.
    const viewHeight = Math.max(clientHeight, heightMax)
    const height = cardsMedia.matches ? cardHeight : rowHeight
    const range = visibleRows({ scrollTop, viewHeight, rowHeight: height, count: bots.length })
    table.setAttribute('aria-rowcount', `${bots.length + 1}`)
    before.style.height = `${range.first * height}px`
    after.style.height = `${(bots.length - range.end) * height}px`
    const focused = document.activeElement?.getAttribute('data-bot') ?? null
    const shown = bots
      .slice(range.first, range.end)
      .map((bot, nth) => rowElement(bot, columns, { 'aria-rowindex': range.first + nth + 2 }))
    body.replaceChildren(before, ...shown, after)
    if (focused !== null) {
      const link = body.querySelector<HTMLElement>(`[data-bot="${focused}"]`)
      link?.focus({ preventScroll: true })
    }
    return range
  }
  return { root, show }
}

/** An empty row in place of others. */
function spacer(colspan: number): HTMLElement {
  const cell = element('td', { colspan })
  return element('tr', { class: 'spacer', 'aria-hidden': 'true' }, cell)
}

function oldestOf({ oldest_age: ageS }: ListedBotShape): HTMLElement | string {
  return isLate(ageS) ? element('span', { class: 'degraded' }, formatAge(ageS)) : formatAge(ageS)
}

function healthOf({ paused, health, mode }: ListedBotShape): HTMLElement | string {
  if (paused === true) return badgeElement('paused')
  if (health !== null) return badgeElement(health)
  return mode === null ? '–' : badgeElement(mode)
}

function countText(list: BotList): string {
  const { bots, missingShards } = list
  const missing =
    missingShards.length > 0 ? ` The bots of ${shardsText(missingShards)} are missing.` : ''
  if (bots.length === 0) return missing.trim()
  return `${shownText(list)}${missing}`
}

function showNone(place: HTMLElement, { bots, query }: BotList): void {
  const isNone = bots.length === 0
  if (isNone && place.hidden) place.replaceChildren(noneElement(query))
  place.hidden = !isNone
}

function noneElement({ search, state }: BotListQuery): HTMLElement {
  if (search !== '' || state !== '') {
    return emptyState({
      title: 'There is no such bot.',
      text: 'Search by the beginning of an id, a username, or a word of a name, in any state.',
    })
  }
  return emptyState({
    title: 'No bot is registered.',
    text: 'Register one here, or in a terminal of the server:',
    command: 'postbote bots register --first-name Shop --username shop_bot',
  })
}

function shownText({ bots, hasMore, isCut, query: { sort } }: BotList): string {
  const count = formatCount(bots.length)
  if (!hasMore) return count === '1' ? '1 bot.' : `${count} bots.`
  if (sort !== 'id')
    return `The ${count} bots with the ${cutTexts[sort]}. Narrow the list to see others.`
  if (isCut) return `The first ${count} bots. Narrow the list to see others.`
  return `The first ${count} bots. Others follow when you scroll.`
}

const cutTexts = {
  pending: 'most pending updates',
  oldest_age: 'oldest pending updates',
  dead_letters: 'most dead letters',
} as const
