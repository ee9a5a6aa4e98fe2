/**
 * The program of the owner's page. The secret of the link is in the fragment of the address; it is taken out of the address and
 * the history first of all, and kept in memory only, so a reload needs the link again.
 *
 *     no link ---address with a secret---> asking ---first response---> shown ---401---> ended
 *
 * With the end of the link, everything ends that the page asks for.
 */
import { ApiClient, ApiError } from '../frame/api-client.ts'
import { browserClock } from '../elements/browser-clock.ts'
import { element } from '../elements/element.ts'
import type { PageContext, PageView, ReaderRights } from '../frame/page-context.ts'
import { pageFrame } from '../frame/page-frame.ts'
import { type PageRoute, routeOf } from '../frame/page-route.ts'
import { type LinkRights, portalView } from './portal-view.ts'
import type { BotRoute } from '../bot/queue-view.ts'
import { viewContext } from '../frame/view-context.ts'
import { waitingFor } from '../elements/waiting.ts'

/** Below this path are the calls that a link may make (protocol.md §9.8). */
const callsPath = '/portal'
/** While the first response is missing. */
const askPauseMs = 1_000
const missingText = 'This page needs its link. Open the link that you were given again.'
const endedText = 'This link has ended. Ask for a new one where you got it.'
const notServedText = 'The server does not serve this page at the moment.'

/** The link that the page shows. */
interface OpenLink {
  readonly botId: string
  readonly api: ApiClient
  rights: LinkRights | undefined
}

export class PortalApp {
  readonly #frame = pageFrame()
  #link: OpenLink | undefined
  /** What the present view has begun. */
  #ends: (() => void)[] = []
  #view: PageView | undefined

  constructor() {
    const secret = takeSecret()
    window.addEventListener('hashchange', () => this.#moved())
    this.#begin(secret ?? '')
  }

  /** The reader has chosen another part of the page, or opened another link in its place. */
  #moved(): void {
    const secret = takeSecret()
    if (secret !== undefined) {
      this.#begin(secret)
      return
    }
    const { rights } = this.#link ?? {}
    if (this.#link === undefined || rights === undefined) return
    const route = ownRoute(this.#link.botId)
    if (this.#view?.follow?.(route) !== true) this.#show(this.#link, rights)
  }

  #begin(secret: string): void {
    const [, botId] = /^pbo_(\d{3,16})_/.exec(secret) ?? []
    if (botId === undefined) {
      this.#end(missingText)
      return
    }
    const link: OpenLink = { botId, rights: undefined, api: this.#apiOf(secret, () => link) }
    this.#link = link
    this.#open(link, noRights, (context) => {
      const waiting = waitingFor()
      const ask = async (): Promise<void> => {
        try {
          await link.api.call('getBot', { id: botId })
        } finally {
          if (this.#link === link && link.rights !== undefined) this.#show(link, link.rights)
        }
      }
      context.poll(askPauseMs, ask, waiting)
      return { title: `Bot ${botId}`, root: waiting.root }
    })
  }

  #apiOf(secret: string, linkOf: () => OpenLink): ApiClient {
    const isShown = (): boolean => this.#link === linkOf()
    return new ApiClient({
      onLoggedOut: () => {
        if (isShown()) this.#end(endedText)
      },
      onTrouble: (trouble) => {
        if (isShown()) this.#frame.showTrouble(trouble)
      },
      clock: browserClock,
      fetch: async (path, request) => {
        const response = await fetch(`${callsPath}${path}`, {
          ...request,
          headers: { ...request.headers, authorization: `Bearer ${secret}` },
          credentials: 'omit',
          cache: 'no-store',
          referrerPolicy: 'no-referrer',
        })
        const rights = rightsIn(response.headers)
        linkOf().rights ??= rights
        // Nobody has looked at the link: a node without `--portal` has responded, a proxy, or a server whose slots are used up.
        const isUnseen = rights === undefined && response.status !== 401
        if (isUnseen && response.status < 500) throw new ApiError(503, 'UNKNOWN', notServedText)
        return response
      },
    })
  }

  #show(link: OpenLink, rights: LinkRights): void {
    const reader = {
      ...noRights,
      may: (right) => right === 'replay' && rights.can.has('replay'),
    } satisfies ReaderRights
    this.#open(link, reader, (context) => portalView(context, ownRoute(link.botId), rights))
  }

  #open({ api }: OpenLink, rights: ReaderRights, make: (context: PageContext) => PageView): void {
    this.#endView()
    api.beginView()
    const view = make(viewContext({ api, rights, toast: this.#frame.toast }, this.#ends))
    this.#view = view
    document.title = view.title
    this.#frame.place.replaceChildren(view.root)
  }

  /** Nothing keeps the secret from here on. */
  #end(text: string): void {
    this.#endView()
    this.#link = undefined
    this.#view = undefined
    this.#frame.showTrouble(undefined)
    document.querySelector('dialog')?.close()
    document.title = text
    const said = element('section', { class: 'card', role: 'alert' }, element('h1', {}, text))
    this.#frame.place.replaceChildren(said)
  }

  #endView(): void {
    for (const end of this.#ends) end()
    this.#ends = []
  }
}

const noRights: ReaderRights = {
  seesAll: false,
  takesForeignTokens: false,
  takesRelays: false,
  may: () => false,
}

/** Returns the secret in the address, which has it no longer then; undefined if the address has none. */
function takeSecret(): string | undefined {
  const { hash, pathname, search } = window.location
  if (hash === '' || hash.startsWith('#/')) return undefined
  window.history.replaceState(null, '', pathname + search)
  return hash.slice(1)
}

/** The fragment names a part of the page of this bot alone. */
function ownRoute(botId: string): BotRoute {
  const route: PageRoute = routeOf(window.location.hash)
  const isOwn = route.page === 'bot' && route.queue.botId === botId && !route.queue.isTest
  return isOwn ? route : { page: 'bot', queue: { botId, isTest: false }, tab: 'activity' }
}

function rightsIn(headers: Headers): LinkRights | undefined {
  const can = headers.get('postbote-link-can')
  if (can === null) return undefined
  const endsAtS = Number(headers.get('postbote-link-expires'))
  return { can: new Set(can.split(',')), endsAtS }
}

// oxlint-disable-next-line no-new -- it runs as long as the page
new PortalApp()
