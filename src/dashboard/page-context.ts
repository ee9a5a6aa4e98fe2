import type { ApiClient } from './api-client.ts'
import type { BrowserClock } from './browser-clock.ts'
import type { Visibility } from './visible-poller.ts'

/** What every view needs, for as long as it is shown. */
export interface PageContext {
  readonly api: ApiClient
  readonly clock: BrowserClock
  readonly visibility: Visibility
  /** Whether the key of the session is for all bots. */
  readonly seesAll: boolean
  /** Whether the key of the session has a scope. What it may not do is not offered. */
  readonly may: (scope: 'push' | 'read' | 'manage' | 'all') => boolean
  /**
   * Repeats work while the view is shown and visible. If the work fails, the header of the page says that the server is in
   * trouble, and the next try follows.
   *
   * @param pauseMs - after each end of the work
   * @returns a function that ends a pause early
   */
  readonly poll: (pauseMs: number, work: () => Promise<void>) => () => void
  /** Has something ended when the view is left. */
  readonly atEnd: (end: () => void) => void
}

/** What fills the page. */
export interface PageView {
  /** For the title of the browser's window. */
  readonly title: string
  readonly root: HTMLElement
}
