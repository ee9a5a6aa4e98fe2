/** What every view of the page is made with: the server, the time, the rights of the reader, and how the page speaks and asks. */
import type { ApiClient } from './api-client.ts'
import type { BrowserClock } from '../elements/browser-clock.ts'
import type { Question } from '../elements/confirm-dialog.ts'
import type { PageRoute } from './page-route.ts'
import type { Toast } from '../elements/messages.ts'
import type { TroubleSums } from '../bots/trouble-sums.ts'
import type { Visibility } from '../elements/visible-poller.ts'
import type { Waiting } from '../elements/waiting.ts'

/** A scope of a key, or a right of a link to the owner's page. A key that manages may replay, too. */
export type PageRight = 'push' | 'read' | 'manage' | 'all' | 'replay'

/** What the reader has a right to. */
export type ReaderRights = Pick<
  PageContext,
  'seesAll' | 'takesForeignTokens' | 'takesRelays' | 'may'
>

/** What every view needs, for as long as it is shown. */
export interface PageContext {
  readonly api: ApiClient
  readonly clock: BrowserClock
  readonly visibility: Visibility
  /** Whether the key of the session is for all bots. */
  readonly seesAll: boolean
  /** Whether the server takes tokens that another server has made. */
  readonly takesForeignTokens: boolean
  /** Whether bots may take their updates from other servers. */
  readonly takesRelays: boolean
  /** Whether the reader has a right. What the reader may not do is not offered. */
  readonly may: (right: PageRight) => boolean
  /** Says what was done. */
  readonly toast: Toast
  /** Has the frame show the sums that the view shows. */
  readonly tellSums: (sums: TroubleSums) => void
  /** Asks the reader before something is done that cannot be undone. */
  readonly ask: (question: Question) => Promise<boolean>
  /** The query of the address: what the view was filtered by. */
  readonly query: URLSearchParams
  /** Keeps the query in the address, so that a reload and a link show the same. */
  readonly keepQuery: (query: Readonly<Record<string, string>>) => void
  /**
   * Repeats work while the view is shown and visible. If the work fails, the page says that the server is in trouble, and the next
   * try follows.
   *
   * @param pauseMs - after each end of the work
   * @param waiting - stands in place of what the work shows until that is there, and says why it was refused
   * @returns a function that ends a pause early; what is in progress is followed by another try at once
   */
  readonly poll: (pauseMs: number, work: () => Promise<void>, waiting?: Waiting) => () => void
  /** Has something ended when the view is left. */
  readonly atEnd: (end: () => void) => void
  /** Returns the context of a part of the view that ends earlier, and what ends it. */
  readonly part: () => { readonly context: PageContext; readonly end: () => void }
}

/** What fills the page. */
export interface PageView {
  /** For the title of the browser's window. */
  readonly title: string
  readonly root: HTMLElement
  /** Shows another part of the same view, and returns whether the route is one. */
  readonly follow?: (route: PageRoute) => boolean
}
