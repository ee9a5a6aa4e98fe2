/**
 * The program of the page: chooses the view by the part of the address after `#`, and asks for the key when the session
 * has ended.
 *
 *     #/                 all bots
 *     #/bots/4711        one bot
 *     #/bots/4711/test   its /test/ queue
 *     #/keys             the keys of the private API
 */
import { ApiClient } from './api-client.ts'
import { botView } from './bot-view.ts'
import { browserClock } from './browser-clock.ts'
import { element, setElementText } from './element.ts'
import { keysView } from './keys-view.ts'
import { loginView } from './login-view.ts'
import { overviewView } from './overview-view.ts'
import type { PageContext, PageView } from './page-context.ts'
import { rightsView } from './rights-view.ts'
import type { RightsShape } from './shapes.ts'
import { VisiblePoller } from './visible-poller.ts'

export class DashboardApp {
  readonly #place = byId('view')
  readonly #connection = byId('connection')
  readonly #logout = byId('logout')
  readonly #keys = byId('keys')
  readonly #api = new ApiClient({
    onLoggedOut: () => this.#askForKey(),
    onTrouble: (trouble) =>
      setElementText(
        this.#connection,
        trouble === undefined ? '' : `${trouble} The page tries again.`,
      ),
    clock: browserClock,
    fetch: (path, request) =>
      fetch(path, { ...request, credentials: 'same-origin', cache: 'no-store' }),
  })
  /** What the key of the session may do. */
  #rights: RightsShape = unknownRights
  /** What the present view has begun. */
  #ends: (() => void)[] = []
  #shown: 'nothing' | 'login' | 'view' = 'nothing'

  constructor() {
    this.#logout.addEventListener('click', () => void this.#logOut())
    window.addEventListener('hashchange', () => this.#show())
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
    this.#place.querySelector<HTMLElement>('input:not([hidden])')?.focus()
  }

  #show(): void {
    this.#shown = 'view'
    this.#open((context) => this.#viewOf(context, location.hash))
    // A screen reader begins at the new page.
    this.#place.focus()
  }

  #viewOf(context: PageContext, hash: string): PageView {
    const { seesAll, may } = context
    if (hash === '' || hash === '#/') {
      return seesAll && may('read') ? overviewView(context) : rightsView(this.#rights)
    }
    if (hash === '#/keys' && seesAll && may('all')) return keysView(context)
    const [, botId, test] = /^#\/bots\/(\d{1,16})(\/test)?$/.exec(hash) ?? []
    if (botId === undefined) {
      return { title: 'Unknown page', root: element('p', {}, 'There is no such page.') }
    }
    return botView(context, { botId, isTest: test !== undefined })
  }

  #open(make: (context: PageContext) => PageView): void {
    for (const end of this.#ends) end()
    this.#api.beginView()
    const ends: (() => void)[] = []
    this.#ends = ends
    const context = contextOf(this.#api, this.#rights, ends)
    this.#logout.hidden = this.#shown !== 'view'
    this.#keys.hidden = this.#logout.hidden || !context.seesAll || !context.may('all')
    const { title, root } = make(context)
    document.title = `${title} – Postbote`
    this.#place.replaceChildren(root)
  }
}

/** Until the server has said it, the page shows everything; what a key may not do is refused in any case. */
const unknownRights: RightsShape = { key_id: null, name: null, scopes: ['all'], bots: null }

/** @param ends - gets what the view has ended when it is left */
function contextOf(
  api: ApiClient,
  { bots, scopes }: RightsShape,
  ends: (() => void)[],
): PageContext {
  return {
    api,
    clock: browserClock,
    visibility: document,
    seesAll: bots === null,
    may: (scope) => scopes.includes('all') || scopes.includes(scope),
    poll(pauseMs, ask) {
      const work = (): Promise<void> => ask().catch(() => undefined)
      const poller = new VisiblePoller({ clock: browserClock, visibility: document, pauseMs, work })
      ends.push(() => poller.close())
      return () => poller.hurry()
    },
    atEnd: (end) => void ends.push(end),
  }
}

function byId(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`expected an element with the id ${id}`)
  return found
}

// oxlint-disable-next-line no-new -- it runs as long as the page
new DashboardApp()
