import type { ApiClient } from './api-client.ts'
import type { BrowserClock } from './browser-clock.ts'
import type { Visibility } from './visible-poller.ts'

/** What every view needs. */
export interface PageContext {
  readonly api: ApiClient
  readonly clock: BrowserClock
  readonly visibility: Visibility
  /** Whether the key of the session has a scope. What it may not do is not offered. */
  may(scope: 'push' | 'read' | 'manage' | 'all'): boolean
}

/** What fills the page. */
export interface PageView {
  /** For the title of the browser's window. */
  readonly title: string
  readonly root: HTMLElement
  /** Ends everything that it has begun. */
  close(): void
}
