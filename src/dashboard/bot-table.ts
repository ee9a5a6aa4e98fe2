/**
 * The table of bots. It has only the rows that are visible and a few around them; two empty rows take the place of all
 * others, so 100,000 bots cost as much as 50. Screen readers get the true number and position of each row.
 */
import { BotList, type BotListQuery } from './bot-list.ts'
import { type Column, headElement, rowElement } from './data-table.ts'
import { buttonElement, cardElement, element, scrollElement } from './element.ts'
import { formatAge, formatCount, shardsText } from './format.ts'
import type { PageContext } from './page-context.ts'
import type { ListedBotShape } from './shapes.ts'
import { statusLine } from './status-line.ts'
import { type RowRange, visibleRows } from './visible-rows.ts'

/** A table that moves every second cannot be read. */
const pauseMs = 3_000
/** As the style says. */
const rowHeight = 32
/** A list is asked for this long after the last key, so that a word is one question. */
const typingPauseMs = 150
const states = ['failing', 'degraded', 'healthy', 'unpolled', 'paused', 'stuck', 'idle'] as const

interface BotColumn extends Column<ListedBotShape> {
  /** The order that its title asks for. */
  readonly sort?: BotListQuery['sort']
}

const columns: readonly BotColumn[] = [
  { title: 'Bot', sort: 'id', cell: linkOf },
  { title: 'Username', style: 'name', cell: (bot) => bot.username, hint: (bot) => bot.first_name },
  { title: 'Mode', style: 'wide', cell: ({ mode }) => mode ?? '–' },
  { title: 'Pending', sort: 'pending', style: 'number', cell: (bot) => formatCount(bot.pending) },
  {
    title: 'Oldest',
    sort: 'oldest_age',
    style: 'number wide',
    cell: (bot) => formatAge(bot.oldest_age),
  },
  { title: 'Health', cell: healthOf, tone: healthOf },
]

export interface BotTable {
  readonly root: HTMLElement
  /** Shows only the bots in a state, as if the reader had chosen it. */
  select(state: string): void
}

export function botTable({ api, clock, poll, atEnd }: PageContext): BotTable {
  const list = new BotList(api)
  const prefix = element('input', { type: 'search', maxlength: 64, oninput: () => typed() })
  const state = element(
    'select',
    { onchange: () => ask() },
    element('option', { value: '' }, 'any'),
    ...states.map((each) => element('option', { value: each }, each)),
  )
  const count = statusLine('faint')
  const heads = columns.map((column) => headOf(column, sortBy))
  const rows = botRows(list, heads)
  let sort: BotListQuery['sort'] = 'pending'
  let cancelTyping: (() => void) | undefined
  let isLoadingMore = false

  function typed(): void {
    cancelTyping?.()
    cancelTyping = clock.after(typingPauseMs, ask)
  }

  function sortBy(chosen: BotListQuery['sort']): void {
    sort = chosen
    showSort(heads, sort)
    ask()
  }

  function ask(): void {
    rows.root.scrollTop = 0
    const query: BotListQuery = {
      // The server takes letters, digits and underscores only, as in usernames.
      prefix: prefix.value.replaceAll(/\W/g, ''),
      state: states.find((each) => each === state.value) ?? '',
      sort,
    }
    list.ask(query).then(show, () => count.say('The list could not be read.'))
  }

  function show(): void {
    rows.show()
    count.say(countText(list))
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

  showSort(heads, sort)
  rows.root.addEventListener('scroll', () => void scrolled())
  poll(pauseMs, () => list.refresh().then(show))
  atEnd(() => cancelTyping?.())
  const controls = [
    element('label', {}, 'Id or username begins with', prefix),
    element('label', {}, 'State', state),
  ]
  const top = element('div', { class: 'controls' }, ...controls)
  const select = (wanted: string): void => {
    state.value = wanted
    state.focus()
    ask()
  }
  return { root: cardElement('Bots', top, count.root, rows.root), select }
}

function headOf(
  column: BotColumn,
  sortBy: (sort: BotListQuery['sort']) => void,
): HTMLTableCellElement {
  const { title, sort } = column
  return headElement(column, sort && buttonElement(title, () => sortBy(sort)))
}

function showSort(heads: readonly HTMLElement[], sort: BotListQuery['sort']): void {
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

function botRows(list: BotList, heads: readonly HTMLElement[]): BotRows {
  const [before, after] = [spacer(), spacer()]
  const body = element('tbody')
  const caption = element('caption', { class: 'hidden-label' }, 'Bots')
  const head = element('thead', {}, element('tr', { 'aria-rowindex': 1 }, ...heads))
  const table = element('table', {}, caption, head, body)
  const root = scrollElement('Bots', table, 'scroll')

  function show(): RowRange {
    const { bots } = list
    const { scrollTop, clientHeight } = root
    const viewHeight = clientHeight || 600
    const range = visibleRows({ scrollTop, viewHeight, rowHeight, count: bots.length })
    table.setAttribute('aria-rowcount', `${bots.length + 1}`)
    before.style.height = `${range.first * rowHeight}px`
    after.style.height = `${(bots.length - range.end) * rowHeight}px`
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
function spacer(): HTMLElement {
  const cell = element('td', { colspan: columns.length })
  return element('tr', { class: 'spacer', 'aria-hidden': 'true' }, cell)
}

function linkOf({ bot_id: id }: ListedBotShape): HTMLElement {
  return element('a', { href: `#/bots/${id}`, 'data-bot': id }, `${id}`)
}

function healthOf({ paused, health }: ListedBotShape): string {
  return paused === true ? 'paused' : (health ?? '–')
}

function countText({ bots, hasMore, missingShards, query }: BotList): string {
  const missing =
    missingShards.length > 0 ? ` The bots of ${shardsText(missingShards)} are missing.` : ''
  if (bots.length === 0) return `${noneText(query)}${missing}`
  return `${shownText(formatCount(bots.length), hasMore ? query.sort : undefined)}${missing}`
}

function noneText({ prefix, state }: BotListQuery): string {
  return prefix === '' && state === '' ? 'No bot is registered.' : 'There is no such bot.'
}

/** @param cutBy - the order of a list that goes on */
function shownText(count: string, cutBy: BotListQuery['sort'] | undefined): string {
  if (cutBy === undefined) return count === '1' ? '1 bot.' : `${count} bots.`
  if (cutBy === 'id') return `The first ${count} bots. Others follow when you scroll.`
  const what = cutBy === 'pending' ? 'with the most' : 'with the oldest'
  return `The ${count} bots ${what} pending updates. Narrow the list to see others.`
}
