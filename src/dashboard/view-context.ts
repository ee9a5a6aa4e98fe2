/** Makes the context of a view: its polls, and what else ends with it. */
import type { ApiClient } from './api-client.ts'
import { browserClock } from './browser-clock.ts'
import { confirmDialog } from './confirm-dialog.ts'
import type { PageContext } from './page-context.ts'
import { queryOf } from './page-route.ts'
import type { RightsShape } from './shapes.ts'
import type { Toast } from './toasts.ts'
import { VisiblePoller } from './visible-poller.ts'

export interface ViewWorld {
  readonly api: ApiClient
  readonly rights: RightsShape
  readonly toast: Toast
}

/** @param ends - gets what the view has ended when it is left */
export function viewContext(world: ViewWorld, ends: (() => void)[]): PageContext {
  const { bots, scopes } = world.rights
  return {
    api: world.api,
    clock: browserClock,
    visibility: document,
    seesAll: bots === null,
    takesForeignTokens: world.rights.foreign_tokens === true,
    may: (scope) => scopes.includes('all') || scopes.includes(scope),
    toast: world.toast,
    ask: confirmDialog,
    query: queryOf(location.hash),
    keepQuery,
    poll(pauseMs, ask) {
      const work = (): Promise<void> => ask().catch(() => undefined)
      const poller = new VisiblePoller({ clock: browserClock, visibility: document, pauseMs, work })
      ends.push(() => poller.close())
      return () => poller.hurry()
    },
    atEnd: (end) => void ends.push(end),
    part() {
      const ofPart: (() => void)[] = []
      const end = (): void => {
        for (const each of ofPart.splice(0)) each()
      }
      ends.push(end)
      return { context: viewContext(world, ofPart), end }
    },
  }
}

function keepQuery(query: Readonly<Record<string, string>>): void {
  const [path = '#/'] = (location.hash || '#/').split('?')
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const text = new URLSearchParams(given.map(([name, value]) => [name, value])).toString()
  history.replaceState(null, '', text === '' ? path : `${path}?${text}`)
}
