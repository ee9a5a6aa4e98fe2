/**
 * The bots that the table shows. The server selects and sorts them, so the page never holds more than it was asked for:
 * the first ones of a sorted list, or, in the order of ids, as many pages as the reader has scrolled to, up to a bound.
 * Of these, the page has only the rows that are visible.
 */
import type { PageInput } from '../frame/page-calls.ts'
import type { BotListShape, ListedBotShape } from '../frame/shapes.ts'

type BotState = NonNullable<NonNullable<PageInput<'listBots'>['query']>['state']>

/** The states that need attention, the worst first. */
export const severities = ['failing', 'unpolled', 'degraded', 'behind'] as const

export interface BotListQuery {
  readonly search: string
  readonly state: BotState | ''
  readonly sort: 'id' | NonNullable<NonNullable<PageInput<'listBots'>['query']>['sort']>
}

/** The part of ApiClient that a list uses. */
export interface ListApi {
  call(id: 'listBots', input: PageInput<'listBots'>): Promise<BotListShape>
}

/** Chosen: fills several screens. The table asks for it every few seconds, and the server allows 1,000. */
const perPage = 200
/** Chosen: nobody scrolls further, and so many take some 2 MB of the browser. Who looks for another bot searches. */
export const botsListedMax = 5_000

export class BotList {
  readonly #api: ListApi
  #query: BotListQuery = { search: '', state: '', sort: 'pending' }
  #bots: readonly ListedBotShape[] = []
  /** The query that the bots are the answer to. */
  #listed: BotListQuery | undefined
  #missing: readonly number[] = []
  /** Whether the server has more bots than the list. */
  #hasMore = false
  /** Queries so far: the answer to an earlier one is dropped. */
  #asked = 0

  constructor(api: ListApi) {
    this.#api = api
  }

  get bots(): readonly ListedBotShape[] {
    return this.#bots
  }

  get query(): BotListQuery {
    return this.#query
  }

  get hasMore(): boolean {
    return this.#hasMore
  }

  /** Whether the reader must narrow the list to see others. */
  get isCut(): boolean {
    return this.#hasMore && (this.#query.sort !== 'id' || this.#bots.length >= botsListedMax)
  }

  /** The shards whose bots are not in the list. */
  get missingShards(): readonly number[] {
    return this.#missing
  }

  /** Asks for the first page of another list. */
  async ask(query: BotListQuery): Promise<void> {
    this.#query = query
    await this.refresh()
  }

  /** Asks for the same list again. A list in the order of ids keeps the pages after the first. */
  async refresh(): Promise<void> {
    const asked = ++this.#asked
    const page = await this.#page(0)
    if (asked !== this.#asked) return
    const last = page.bots.at(-1)?.bot_id ?? 0
    const isPaged =
      this.#query.sort === 'id' && this.#listed === this.#query && page.bots.length === perPage
    const later = isPaged ? this.#bots.filter((bot) => bot.bot_id > last) : []
    const isSame = later.length > 0
    this.#listed = this.#query
    this.#bots = [...page.bots, ...later]
    this.#missing = page.missing_shards ?? []
    if (!isSame) this.#hasMore = page.bots.length === perPage
  }

  /** Adds the next page of a list in the order of ids. */
  async more(): Promise<void> {
    const last = this.#bots.at(-1)?.bot_id
    if (!this.#hasMore || this.isCut || last === undefined) return
    const asked = ++this.#asked
    const page = await this.#page(last)
    if (asked !== this.#asked) return
    this.#bots = [...this.#bots, ...page.bots]
    this.#hasMore = page.bots.length === perPage
  }

  #page(after: number): Promise<BotListShape> {
    const { search, state, sort } = this.#query
    const query = {
      limit: perPage,
      details: true,
      search: search === '' ? undefined : search,
      state: state === '' ? undefined : state,
      ...(sort === 'id' ? { after } : { sort }),
    }
    return this.#api.call('listBots', { query })
  }
}

/** Where the list is scrolled to, in pixels. */
export interface ScrollState {
  readonly scrollTop: number
  readonly viewHeight: number
  readonly rowHeight: number
  readonly count: number
}

/** Rows `first` to `end`, without `end`. */
export interface RowRange {
  readonly first: number
  readonly end: number
}

/** Some rows above and below what is seen, so that a fast scroll shows no blank. */
const spareRows = 10

/**
 * Returns which rows of a long list must be in the page: the visible ones and some around them, however long the list is.
 */
export function visibleRows({ scrollTop, viewHeight, rowHeight, count }: ScrollState): RowRange {
  const top = Math.floor(Math.max(scrollTop, 0) / rowHeight)
  const shown = Math.ceil(viewHeight / rowHeight)
  const first = Math.max(0, Math.min(top, count - shown) - spareRows)
  return { first, end: Math.min(count, Math.max(top, 0) + shown + spareRows) }
}
