/**
 * The bots that the table shows. The server selects and sorts them, so the page never holds more than it was asked for:
 * the first ones of a sorted list, or, in the order of ids, as many pages as the reader has scrolled to, up to a bound.
 */
import type { PageInput } from '../frame/page-calls.ts'
import type { BotListShape, ListedBotShape } from '../frame/shapes.ts'

type BotState = NonNullable<NonNullable<PageInput<'listBots'>['query']>['state']>

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
