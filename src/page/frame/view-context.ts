/** Makes the context of a view: its polls, and what else ends with it. */
import { isTrouble } from './api-client.ts'
import { browserClock } from '../elements/browser-clock.ts'
import { confirmDialog } from '../elements/confirm-dialog.ts'
import type { PageContext, ReaderRights } from './page-context.ts'
import { queryOf } from './page-route.ts'
import type { RightsShape } from './shapes.ts'
import { errorText } from '../elements/messages.ts'
import { VisiblePoller } from '../elements/visible-poller.ts'

export interface ViewWorld
  extends Pick<PageContext, 'api' | 'toast'>,
    Partial<Pick<PageContext, 'tellSums'>> {
  readonly rights: ReaderRights
}

/** @param ends - gets what the view has ended when it is left */
export function viewContext(world: ViewWorld, ends: (() => void)[]): PageContext {
  return {
    ...world.rights,
    api: world.api,
    clock: browserClock,
    visibility: document,
    toast: world.toast,
    tellSums: (sums) => world.tellSums?.(sums),
    ask: confirmDialog,
    query: queryOf(location.hash),
    keepQuery,
    poll(pauseMs, ask, waiting) {
      const failed = (error: unknown): 'soon' | 'later' => {
        const isOfServer = isTrouble(error)
        // What was read stays while the page says that the server is in trouble.
        const isShown = waiting?.isDone() === true && isOfServer
        if (!isShown) waiting?.fail(errorText(error), () => poller.hurry())
        return isOfServer ? 'soon' : 'later'
      }
      const work = (): Promise<'soon' | 'later'> => ask().then(later, failed)
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

/** Returns what a session has a right to. */
export function rightsOfSession({ bots, scopes, ...server }: RightsShape): ReaderRights {
  const has = (scope: string): boolean => scopes.some((each) => each === 'all' || each === scope)
  return {
    seesAll: bots === null,
    takesForeignTokens: server.foreign_tokens === true,
    takesRelays: server.relays === true,
    may: (right) => has(right === 'replay' ? 'manage' : right),
  }
}

function later(): 'later' {
  return 'later'
}

function keepQuery(query: Readonly<Record<string, string>>): void {
  const [path = '#/'] = (location.hash || '#/').split('?')
  const kept = Object.entries(query).filter(([, value]) => value !== '')
  const text = new URLSearchParams(kept.map(([name, value]) => [name, value])).toString()
  history.replaceState(null, '', text === '' ? path : `${path}?${text}`)
}
