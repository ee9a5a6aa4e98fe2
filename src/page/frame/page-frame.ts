/** The parts of the document around a view, which the dashboard and the owner's page have in common. */
import { browserClock } from '../elements/browser-clock.ts'
import { setElementText } from '../elements/element.ts'
import { refreshTimes } from '../elements/page-part.ts'
import { type Toast, toasts } from '../elements/messages.ts'
import { VisiblePoller } from '../elements/visible-poller.ts'

/** How often moments are said anew: `3 min ago` needs no more. */
const timesPauseMs = 5_000

export interface PageFrame {
  /** Holds the view. */
  readonly place: HTMLElement
  readonly toast: Toast
  /** Says what is wrong with the server, and grays the view; undefined: nothing is. */
  readonly showTrouble: (trouble: string | undefined) => void
}

/** Finds the frame in the document, and keeps the moments in its view up to date for as long as the page is open. */
export function pageFrame(): PageFrame {
  const place = byId('view')
  const connection = byId('connection')
  const work = (): Promise<'later'> => {
    refreshTimes(browserClock, place)
    return Promise.resolve('later')
  }
  const often = { clock: browserClock, visibility: document, pauseMs: timesPauseMs }
  // oxlint-disable-next-line no-new -- it runs as long as the page
  new VisiblePoller({ ...often, work })
  return {
    place,
    toast: toasts(byId('toasts'), browserClock),
    showTrouble(trouble) {
      setElementText(connection, trouble === undefined ? '' : `${trouble} The page tries again.`)
      place.classList.toggle('stale', trouble !== undefined)
    },
  }
}

/** Returns an element of the document that must be there. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`expected an element with the id ${id}`)
  return found
}
