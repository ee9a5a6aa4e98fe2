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
import { BotView } from './bot-view.ts'
import { browserClock } from './browser-clock.ts'
import { element, setElementText } from './element.ts'
import { LoginView } from './login-view.ts'
import { OverviewView } from './overview-view.ts'
import { KeysView } from './keys-view.ts'
import type { PageContext, PageView } from './page-context.ts'
import { RightsView } from './rights-view.ts'
import type { RightsShape } from './shapes.ts'

export class DashboardApp {
  readonly #place = byId('view')
  readonly #connection = byId('connection')
  readonly #logout = byId('logout')
  readonly #keys = byId('keys')
  readonly #context: PageContext
  #view: PageView | undefined
  /** What the key of the session may do. */
  #rights: RightsShape = unknownRights

  constructor() {
    const api = new ApiClient({
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
    const may = (scope: RightsShape['scopes'][number]): boolean => {
      const { scopes } = this.#rights
      return scopes.includes('all') || scopes.includes(scope)
    }
    this.#context = { api, clock: browserClock, visibility: document, may }
    this.#logout.addEventListener('click', () => void this.#end())
    window.addEventListener('hashchange', () => this.#show())
    void this.#begin()
  }

  /** Whether there is a session is what the first call says. */
  async #begin(): Promise<void> {
    try {
      await this.#learnRights()
      this.#show()
    } catch {
      if (this.#view === undefined) this.#show()
    }
  }

  async #learnRights(): Promise<void> {
    this.#rights = await this.#context.api.call('getSession', {})
  }

  async #loggedIn(): Promise<void> {
    await this.#learnRights().catch(() => undefined)
    this.#show()
  }

  async #end(): Promise<void> {
    await this.#context.api.logout().catch(() => undefined)
    this.#askForKey()
  }

  #askForKey(): void {
    if (this.#view instanceof LoginView) return
    this.#logout.hidden = true
    this.#keys.hidden = true
    this.#rights = unknownRights
    this.#open(new LoginView(this.#context.api, () => void this.#loggedIn()))
    this.#place.querySelector<HTMLElement>('input:not([hidden])')?.focus()
  }

  #show(): void {
    this.#logout.hidden = false
    this.#keys.hidden = !this.#mayUseKeys()
    this.#open(this.#viewOf(location.hash))
    // A screen reader begins at the new page.
    this.#place.focus()
  }

  #viewOf(hash: string): PageView {
    if (hash === '' || hash === '#/') {
      const seesAll = this.#rights.bots === null && this.#context.may('read')
      return seesAll ? new OverviewView(this.#context) : new RightsView(this.#rights)
    }
    if (hash === '#/keys' && this.#mayUseKeys())
      return new KeysView({ ...this.#context, confirm: ask })
    const [, botId, test] = /^#\/bots\/(\d{1,16})(\/test)?$/.exec(hash) ?? []
    if (botId === undefined) {
      const root = element('p', {}, 'There is no such page.')
      return { title: 'Unknown page', root, close: () => undefined }
    }
    const queue = { botId, isTest: test !== undefined }
    const seesAll = this.#rights.bots === null
    return new BotView({ ...this.#context, queue, confirm: ask, seesAll })
  }

  #mayUseKeys(): boolean {
    return this.#rights.bots === null && this.#context.may('all')
  }

  #open(view: PageView): void {
    this.#view?.close()
    this.#context.api.beginView()
    this.#view = view
    document.title = `${view.title} – Postbote`
    this.#place.replaceChildren(view.root)
  }
}

/** Until the server has said it, the page shows everything; what a key may not do is refused in any case. */
const unknownRights: RightsShape = { key_id: null, name: null, scopes: ['all'], bots: null }

function ask(question: string): boolean {
  return confirm(question)
}

function byId(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`expected an element with the id ${id}`)
  return found
}

// oxlint-disable-next-line no-new -- it runs as long as the page
new DashboardApp()
