/**
 * The program of the page: chooses the view by the part of the address after `#`, and asks for the key when the session
 * has ended.
 *
 *     #/                 all bots
 *     #/bots/4711        one bot
 *     #/bots/4711/test   its /test/ queue
 */
import { ApiClient } from './api-client.ts'
import { BotView } from './bot-view.ts'
import { browserClock } from './browser-clock.ts'
import { element, setElementText } from './element.ts'
import { LoginView } from './login-view.ts'
import { OverviewView } from './overview-view.ts'
import type { PageContext, PageView } from './page-context.ts'

export class DashboardApp {
  readonly #place = byId('view')
  readonly #connection = byId('connection')
  readonly #logout = byId('logout')
  readonly #context: PageContext
  #view: PageView | undefined

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
    this.#context = { api, clock: browserClock, visibility: document }
    this.#logout.addEventListener('click', () => void this.#end())
    window.addEventListener('hashchange', () => this.#show())
    void this.#begin()
  }

  /** Whether there is a session is what the first call says. */
  async #begin(): Promise<void> {
    try {
      await this.#context.api.get('/v1/bots?limit=1')
      this.#show()
    } catch {
      if (this.#view === undefined) this.#show()
    }
  }

  async #end(): Promise<void> {
    await this.#context.api.logout().catch(() => undefined)
    this.#askForKey()
  }

  #askForKey(): void {
    if (this.#view instanceof LoginView) return
    this.#logout.hidden = true
    this.#open(new LoginView(this.#context.api, () => this.#show()))
    this.#place.querySelector<HTMLElement>('input:not([hidden])')?.focus()
  }

  #show(): void {
    this.#logout.hidden = false
    this.#open(this.#viewOf(location.hash))
    // A screen reader begins at the new page.
    this.#place.focus()
  }

  #viewOf(hash: string): PageView {
    if (hash === '' || hash === '#/') return new OverviewView(this.#context)
    const [, botId, test] = /^#\/bots\/(\d{1,16})(\/test)?$/.exec(hash) ?? []
    if (botId === undefined) {
      const root = element('p', {}, 'There is no such page.')
      return { title: 'Unknown page', root, close: () => undefined }
    }
    const queue = { botId, isTest: test !== undefined }
    return new BotView({ ...this.#context, queue, confirm: (question) => confirm(question) })
  }

  #open(view: PageView): void {
    this.#view?.close()
    this.#context.api.beginView()
    this.#view = view
    document.title = `${view.title} – Postbote`
    this.#place.replaceChildren(view.root)
  }
}

function byId(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`expected an element with the id ${id}`)
  return found
}

// oxlint-disable-next-line no-new -- it runs as long as the page
new DashboardApp()
