/**
 * The program of the page: chooses the view by the address (page-route.ts), asks for the key when the session has ended, and
 * keeps the frame around the views: the navigation with what fails, the title, messages and the keyboard.
 */
import { ApiClient } from './api-client.ts'
import { auditView } from '../server/audit-view.ts'
import { botView } from '../bot/bot-view.ts'
import { browserClock } from '../elements/browser-clock.ts'
import { deadLettersView } from '../bots/dead-letters-view.ts'
import { applyDisplay } from './display-choices.ts'
import { displayMenu } from './display-menu.ts'
import { element, setElementText } from '../elements/element.ts'
import { emptyState } from '../elements/data-table.ts'
import { eventsView } from '../server/events-view.ts'
import { formatCount } from '../elements/format.ts'
import { handlePageKeys, keysDialog } from './page-keys.ts'
import { keysView } from '../server/keys-view.ts'
import { loginView } from './login-view.ts'
import { nodesView } from '../server/nodes-view.ts'
import { overviewView, rightsView } from '../bots/overview-view.ts'
import type { PageContext, PageView } from './page-context.ts'
import { Palette } from './palette.ts'
import { type OfferedPage, paletteSource } from './palette-source.ts'
import { byId, pageFrame } from './page-frame.ts'
import { type PageRoute, routeOf } from './page-route.ts'
import { registerView } from '../bots/register-view.ts'
import type { RightsShape } from './shapes.ts'
import { rightsOfSession, viewContext } from './view-context.ts'
import { troubledOf, type TroubleSums, troubleSumsText } from '../bots/trouble-sums.ts'
import { VisiblePoller } from '../elements/visible-poller.ts'

/** How often the title and the navigation learn what fails. */
const countsPauseMs = 10_000

type ListPage = Exclude<PageRoute['page'], 'bot' | 'unknown'>

/** What each page needs of a key, beside that the key is for all bots. */
const listPages: Readonly<
  Record<
    ListPage,
    {
      readonly title: string
      readonly scope: 'read' | 'manage' | 'all'
      readonly view: (context: PageContext) => PageView
    }
  >
> = {
  bots: { title: 'Bots', scope: 'read', view: overviewView },
  register: { title: 'Register a bot', scope: 'manage', view: registerView },
  events: { title: 'Events', scope: 'read', view: eventsView },
  'dead-letters': { title: 'Dead letters', scope: 'read', view: deadLettersView },
  nodes: { title: 'Nodes', scope: 'read', view: nodesView },
  keys: { title: 'Keys', scope: 'all', view: keysView },
  audit: { title: 'Audit', scope: 'all', view: auditView },
}

export class DashboardApp {
  readonly #frame = pageFrame()
  readonly #logout = byId('logout')
  readonly #pages = byId('pages')
  readonly #find = byId('find')
  readonly #api = new ApiClient({
    onLoggedOut: () => this.#askForKey(),
    onTrouble: this.#frame.showTrouble,
    clock: browserClock,
    fetch: (path, request) =>
      fetch(path, { ...request, credentials: 'same-origin', cache: 'no-store' }),
  })
  /** What the key of the session may do. */
  #rights: RightsShape = unknownRights
  /** What the present view has begun. */
  #ends: (() => void)[] = []
  #shown: 'nothing' | 'login' | 'view' = 'nothing'
  #view: PageView | undefined
  #context: PageContext | undefined
  #palette: Palette | undefined
  readonly #counting: VisiblePoller
  /** How many bots need attention. */
  #troubled = 0

  constructor() {
    // The program that runs before the first paint has its own memory.
    applyDisplay()
    this.#logout.addEventListener('click', () => void this.#logOut())
    window.addEventListener('hashchange', () => {
      if (this.#shown === 'view') this.#show()
    })
    this.#find.addEventListener('click', () => this.#search())
    const keys = { root: this.#frame.place, onSearch: () => this.#search(), onHelp: keysDialog }
    document.addEventListener('keydown', (event) => handlePageKeys(event, keys))
    displayMenu(byId('display'), () => this.#shown === 'view' && this.#showAnew())
    this.#counting = this.#repeat(countsPauseMs, () => this.#count())
    void this.#begin()
  }

  /** Whether there is a session is what the first call says. */
  async #begin(): Promise<void> {
    try {
      await this.#learnRights()
      this.#show()
    } catch {
      if (this.#shown === 'nothing') this.#show()
    }
  }

  async #learnRights(): Promise<void> {
    this.#rights = await this.#api.call('getSession', {})
  }

  async #loggedIn(): Promise<void> {
    await this.#learnRights().catch(() => undefined)
    this.#show()
  }

  async #logOut(): Promise<void> {
    await this.#api.logout().catch(() => undefined)
    this.#askForKey()
  }

  #askForKey(): void {
    if (this.#shown === 'login') return
    this.#shown = 'login'
    this.#rights = unknownRights
    this.#open((context) => loginView(context, () => void this.#loggedIn()))
    this.#frame.place.querySelector<HTMLElement>('input:not([hidden])')?.focus()
  }

  #show(): void {
    const route = routeOf(location.hash)
    if (this.#shown === 'view' && this.#view?.follow?.(route) === true) return
    this.#showAnew(route)
  }

  #showAnew(route = routeOf(location.hash)): void {
    this.#shown = 'view'
    this.#open((context) => this.#viewOf(context, route))
    this.#markPage(route)
    this.#counting.hurry()
    // A screen reader begins at the new page.
    if (!byId('display').contains(document.activeElement)) this.#frame.place.focus()
  }

  /** Opens the search over the view. */
  #search(): void {
    const context = this.#context
    if (this.#shown !== 'view' || context === undefined) return
    const source = paletteSource(context, routeOf(location.hash), pagesFor(context))
    const onClosed = (): void => void (this.#palette = undefined)
    this.#palette = new Palette({ clock: browserClock, source, onClosed })
  }

  #viewOf(context: PageContext, route: PageRoute): PageView {
    if (route.page === 'unknown') return unknownView()
    if (route.page === 'bot') return botView(context, route)
    if (mayOpen(context, route.page)) return listPages[route.page].view(context)
    if (route.page === 'bots') return rightsView(context, this.#rights)
    return refusedView(context, route.page)
  }

  #open(make: (context: PageContext) => PageView): void {
    this.#palette?.close()
    for (const end of this.#ends) end()
    this.#api.beginView()
    const ends: (() => void)[] = []
    this.#ends = ends
    const rights = rightsOfSession(this.#rights)
    const { toast } = this.#frame
    const tellSums = (sums: TroubleSums): void => this.#showSums(sums)
    const context = viewContext({ api: this.#api, rights, toast, tellSums }, ends)
    const view = make(context)
    this.#view = view
    this.#context = context
    this.#logout.hidden = this.#shown !== 'view'
    this.#pages.hidden = this.#logout.hidden
    this.#find.hidden = this.#logout.hidden
    this.#showPages(context)
    this.#showTitle()
    this.#frame.place.replaceChildren(view.root)
  }

  /** Offers the pages that the key may see. */
  #showPages(context: PageContext): void {
    for (const link of this.#pages.querySelectorAll<HTMLElement>('[data-page]')) {
      const { page } = routeOf(link.getAttribute('href') ?? '')
      if (page === 'bots' || page === 'bot' || page === 'unknown') continue
      link.hidden = !mayOpen(context, page)
    }
  }

  #markPage({ page }: PageRoute): void {
    const shown = page === 'bot' || page === 'register' ? 'bots' : page
    for (const link of this.#pages.querySelectorAll<HTMLElement>('[data-page]')) {
      if (link.dataset['page'] === shown) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }

  /** Learns what needs attention, for the title and the navigation, whatever the reader looks at. */
  async #count(): Promise<void> {
    const { may, seesAll } = rightsOfSession(this.#rights)
    if (this.#shown !== 'view' || !seesAll || !may('read')) return
    this.#showSums(await this.#api.call('getSummary', {}))
  }

  #showSums(sums: TroubleSums): void {
    this.#troubled = troubledOf(sums)
    this.#showCount('troubled', this.#troubled, troubleSumsText(sums))
    this.#showCount('dead-letters', sums.dead_letters, '')
    this.#showTitle()
  }

  #showCount(name: string, count: number, what: string): void {
    const place = this.#pages.querySelector<HTMLElement>(`[data-count="${name}"]`)
    if (place === null) return
    place.hidden = count === 0
    place.title = what
    setElementText(place, formatCount(count))
  }

  #showTitle(): void {
    const count = this.#troubled > 0 && this.#shown === 'view' ? `(${this.#troubled}) ` : ''
    document.title = `${count}${this.#view?.title ?? ''} – Postbote`
  }

  #repeat(pauseMs: number, work: () => Promise<void>): VisiblePoller {
    return new VisiblePoller({
      clock: browserClock,
      visibility: document,
      pauseMs,
      async work() {
        await work().catch(() => undefined)
        return 'later'
      },
    })
  }
}

/** Until the server has said it, the page shows everything; what a key may not do is refused in any case. */
const unknownRights: RightsShape = { key_id: null, name: null, scopes: ['all'], bots: null }

function mayOpen({ seesAll, may }: PageContext, page: ListPage): boolean {
  return seesAll && may(listPages[page].scope)
}

/** Returns the pages that the key may see. A key for some bots has a first page of its own. */
function pagesFor(context: PageContext): readonly OfferedPage[] {
  return Object.entries(listPages).flatMap(([name, { title }]) => {
    const href = name === 'bots' ? '#/' : `#/${name}`
    const { page } = routeOf(href)
    if (page === 'bot' || page === 'unknown') return []
    return page === 'bots' || mayOpen(context, page) ? [{ title, href }] : []
  })
}

function unknownView(): PageView {
  return noView('Unknown page', 'There is no such page', 'The address may be old.')
}

/** Says what the key lacks for a page that there is. */
function refusedView({ may }: PageContext, page: ListPage): PageView {
  const { scope, title } = listPages[page]
  const needs = may(scope) ? 'to be for all bots' : `the scope ${scope}`
  return noView(title, 'Your key may not see this page', `It needs ${needs}.`)
}

function noView(title: string, heading: string, text: string): PageView {
  const back = element('a', { href: '#/', class: 'button primary' }, 'Go to the bots')
  const root = element(
    'section',
    { class: 'card' },
    element('h1', {}, heading),
    emptyState({ title: '', text }),
    element('p', { class: 'empty' }, back),
  )
  return { title, root }
}

// oxlint-disable-next-line no-new -- it runs as long as the page
new DashboardApp()
