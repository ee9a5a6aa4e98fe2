/**
 * What stands in place of data that was not read yet. A first read that fails says so, with a way to try again: grey bars for ever
 * would look like a server that thinks.
 *
 *     waiting --read--> gone
 *        |  ^              |
 *        |  +-- try again  | a refused read: what is shown is old
 *        +--failed--> said <
 */
import type { BrowserClock } from './browser-clock.ts'
import { buttonElement, element, setElementText } from './element.ts'

export interface Waiting {
  readonly root: HTMLElement
  /** There is something to show, or nothing is read. */
  readonly done: () => void
  /** Whether something is shown, which stays after a later failure. */
  readonly isDone: () => boolean
  /** Says why there is nothing. */
  readonly fail: (why: string, tryAgain: () => void) => void
}

export function waitingFor(): Waiting {
  let again = nothing
  let isDone = false
  const why = element('p', { role: 'alert' })
  const button = buttonElement(
    'Try again',
    () => {
      show('skeleton')
      again()
    },
    { style: 'small' },
  )
  const said = element('div', { class: 'empty error', hidden: true }, why, button)
  const bars = element('div', { class: 'skeleton' })
  const root = element('div', {}, bars, said)
  const show = (what: 'skeleton' | 'failure' | 'nothing'): void => {
    root.hidden = what === 'nothing'
    bars.hidden = what !== 'skeleton'
    said.hidden = what !== 'failure'
  }
  return {
    root,
    done() {
      isDone = true
      show('nothing')
    },
    isDone: () => isDone,
    fail(text, tryAgain) {
      again = tryAgain
      setElementText(why, text)
      show('failure')
    },
  }
}

/** What a part knows of the view that it is in. */
interface View {
  readonly clock: Pick<BrowserClock, 'after'>
  readonly atEnd: (end: () => void) => void
}

/** Chosen: what is below waits this long for a server that is slow. */
const arrivalMsMax = 2_000

/**
 * Hides what comes after a part of the page until it is there, so that it does not jump.
 *
 * @returns what to call then
 */
export function arriving({ atEnd, clock }: View, root: HTMLElement): () => void {
  const arrived = (): void => root.classList.remove('arriving')
  root.classList.add('arriving')
  atEnd(clock.after(arrivalMsMax, arrived))
  return arrived
}

function nothing(): void {}
