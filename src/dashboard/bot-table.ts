/**
 * The table of bots. It has only the rows that are visible and a few around them; two empty rows take the place of all
 * others, so 100,000 bots cost as much as 50. Screen readers get the true number and position of each row.
 */
import { BotList, type BotListQuery } from './bot-list.ts'
import { element, setElementText } from './element.ts'
import { formatAge, formatCount, shardsText } from './format.ts'
import type { PageContext } from './page-context.ts'
import type { ListedBotShape } from './shapes.ts'
import { type RowRange, visibleRows } from './visible-rows.ts'

/** As the style says. */
const rowHeight = 32
/** A list is asked for this long after the last key, so that a word is one question. */
const typingPauseMs = 150
const states = ['failing', 'degraded', 'healthy', 'unpolled', 'paused', 'stuck', 'idle'] as const
const columns = [
  { title: 'Bot', sort: 'id', style: '' },
  { title: 'Username', sort: undefined, style: '' },
  { title: 'Mode', sort: undefined, style: 'wide' },
  { title: 'Pending', sort: 'pending', style: 'number' },
  { title: 'Oldest', sort: 'oldest_age', style: 'number wide' },
  { title: 'Health', sort: undefined, style: '' },
] as const

export class BotTable {
  readonly root: HTMLElement
  readonly #context: PageContext
  readonly #list: BotList
  readonly #prefix = element('input', {
    type: 'search',
    maxlength: 64,
    oninput: () => this.#typed(),
  })
  readonly #state = element(
    'select',
    { onchange: () => this.#changed() },
    element('option', { value: '' }, 'any'),
    ...states.map((state) => element('option', { value: state }, state)),
  )
  readonly #heads = columns.map((column) => this.#head(column))
  readonly #before = element(
    'tr',
    { class: 'spacer', 'aria-hidden': 'true' },
    element('td', { colspan: 6 }),
  )
  readonly #after = element(
    'tr',
    { class: 'spacer', 'aria-hidden': 'true' },
    element('td', { colspan: 6 }),
  )
  readonly #body = element('tbody')
  readonly #table = element(
    'table',
    {},
    element('caption', { class: 'hidden-label' }, 'Bots'),
    element('thead', {}, element('tr', { 'aria-rowindex': 1 }, ...this.#heads)),
    this.#body,
  )
  readonly #scroll = element(
    'div',
    {
      class: 'scroll',
      tabindex: 0,
      role: 'region',
      'aria-label': 'Bots',
      onscroll: () => this.#scrolled(),
    },
    this.#table,
  )
  readonly #count = element('p', { role: 'status', class: 'faint' })
  #sort: BotListQuery['sort'] = 'pending'
  #cancelTyping: (() => void) | undefined
  #isLoadingMore = false

  constructor(context: PageContext) {
    this.#context = context
    this.#list = new BotList(context.api)
    this.root = element(
      'section',
      { class: 'card' },
      element('h2', {}, 'Bots'),
      element(
        'div',
        { class: 'controls' },
        element('label', {}, 'Id or username begins with', this.#prefix),
        element('label', {}, 'State', this.#state),
      ),
      this.#count,
      this.#scroll,
    )
    this.#showSort()
  }

  close(): void {
    this.#cancelTyping?.()
  }

  async refresh(): Promise<void> {
    await this.#list.refresh()
    this.#show()
  }

  /** Shows only the bots in a state, as if the reader had chosen it. */
  select(state: string): void {
    this.#state.value = state
    this.#state.focus()
    this.#changed()
  }

  #head({ title, sort, style }: (typeof columns)[number]): HTMLElement {
    if (sort === undefined) return element('th', { scope: 'col', class: style }, title)
    const by = (): void => {
      this.#sort = sort
      this.#showSort()
      this.#changed()
    }
    return element(
      'th',
      { scope: 'col', class: style },
      element('button', { type: 'button', onclick: by }, title),
    )
  }

  #showSort(): void {
    for (const [nth, { sort }] of columns.entries()) {
      const direction = sort === 'id' ? 'ascending' : 'descending'
      if (sort === this.#sort) this.#heads[nth]?.setAttribute('aria-sort', direction)
      else this.#heads[nth]?.removeAttribute('aria-sort')
    }
  }

  #typed(): void {
    this.#cancelTyping?.()
    this.#cancelTyping = this.#context.clock.after(typingPauseMs, () => this.#changed())
  }

  #changed(): void {
    // The server takes letters, digits and underscores only, as in usernames.
    const prefix = this.#prefix.value.replaceAll(/\W/g, '')
    this.#scroll.scrollTop = 0
    const state = states.find((each) => each === this.#state.value) ?? ''
    void this.#list
      .ask({ prefix, state, sort: this.#sort })
      .then(() => this.#show())
      .catch(() => setElementText(this.#count, 'The list could not be read.'))
  }

  #scrolled(): void {
    const { end } = this.#show()
    if (end < this.#list.bots.length || !this.#list.hasMore || this.#isLoadingMore) return
    this.#isLoadingMore = true
    void this.#loadMore()
  }

  async #loadMore(): Promise<void> {
    // If it fails, the next scroll tries again.
    await this.#list.more().catch(() => undefined)
    this.#isLoadingMore = false
    this.#show()
  }

  #show(): RowRange {
    const { bots } = this.#list
    const { scrollTop, clientHeight } = this.#scroll
    const rows = visibleRows({
      scrollTop,
      viewHeight: clientHeight || 600,
      rowHeight,
      count: bots.length,
    })
    this.#table.setAttribute('aria-rowcount', `${bots.length + 1}`)
    this.#before.style.height = `${rows.first * rowHeight}px`
    this.#after.style.height = `${(bots.length - rows.end) * rowHeight}px`
    const focused = document.activeElement?.getAttribute('data-bot')
    const shown = bots.slice(rows.first, rows.end).map((bot, nth) => rowOf(bot, rows.first + nth))
    this.#body.replaceChildren(this.#before, ...shown, this.#after)
    if (focused !== null && focused !== undefined) {
      this.#body
        .querySelector<HTMLElement>(`[data-bot="${focused}"]`)
        ?.focus({ preventScroll: true })
    }
    setElementText(this.#count, this.#countText())
    return rows
  }

  #countText(): string {
    const { bots, hasMore, missingShards, query } = this.#list
    const missing =
      missingShards.length > 0 ? ` The bots of ${shardsText(missingShards)} are missing.` : ''
    if (bots.length === 0) return `${noneText(query)}${missing}`
    return `${shownText(formatCount(bots.length), hasMore ? query.sort : undefined)}${missing}`
  }
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

function rowOf(bot: ListedBotShape, index: number): HTMLElement {
  const id = `${bot.bot_id}`
  const health = bot.paused === true ? 'paused' : (bot.health ?? '–')
  return element(
    'tr',
    { 'aria-rowindex': index + 2 },
    element('td', {}, element('a', { href: `#/bots/${id}`, 'data-bot': id }, id)),
    element('td', { class: 'name', title: bot.first_name }, bot.username),
    element('td', { class: 'wide' }, bot.mode ?? '–'),
    element('td', { class: 'number' }, formatCount(bot.pending)),
    element('td', { class: 'number wide' }, formatAge(bot.oldest_age)),
    element('td', { class: health }, health),
  )
}
