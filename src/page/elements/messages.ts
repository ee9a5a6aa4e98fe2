/** What the page says to its reader: in a place, in a line that a screen reader reads, or at its edge for some seconds. */
import { plainText } from './field-error.ts'
import { type Child, element, buttonElement } from './element.ts'
import type { BrowserClock } from './browser-clock.ts'

/** What the page says: a text, or one with links. */
export type Message = string | readonly Child[]

/** Says something in a place, if it differs from what is there, so that a screen reader repeats nothing. */
export function setMessage(place: HTMLElement, message: Message): void {
  const span = element('span', {}, ...[message].flat())
  if (place.textContent !== span.textContent) place.replaceChildren(...span.childNodes)
}

/** Returns what went wrong, for the reader of the page. */
export function errorText(error: unknown): string {
  return plainText(error instanceof Error ? error.message : String(error))
}

/** A line that says how something has ended; a screen reader says it, too. */
export interface StatusLine {
  readonly root: HTMLElement
  readonly say: (message: Message) => void
  /** Acts, and says what the action returns, or why it failed. */
  readonly run: (act: () => Promise<Message>) => void
}

/**
 * Makes an empty line.
 *
 * @param style - classes of page.css
 * @param role - `alert` interrupts a screen reader
 */
export function statusLine(style: string, role: 'status' | 'alert' = 'status'): StatusLine {
  const root = element('p', { role, class: style })
  const say = (message: Message): void => setMessage(root, message)
  const run = (act: () => Promise<Message>): void => {
    void act().then(say, (error: unknown) => say(errorText(error)))
  }
  return { root, say, run }
}

/** Takes back what was done. */
export type Undo = () => Promise<unknown>

/** Says what was done. */
export type Toast = (message: Message, undo?: Undo) => void

/** Chosen: long enough to read a sentence and to reach the button. */
const shownMs = 8_000
/** The oldest goes first. */
const toastsMax = 3

/**
 * Makes what shows short messages about what was done, at the edge of the page, some with a button that takes it back.
 *
 * @param place - where they appear; a screen reader reads what is added to it
 */
export function toasts(place: HTMLElement, clock: BrowserClock): Toast {
  const toast: Toast = (message, undo) => {
    const take = (): void => {
      shown.remove()
      undo?.().then(
        () => toast('Taken back.'),
        (error: unknown) => toast(errorText(error)),
      )
    }
    const shown = element(
      'div',
      { class: 'toast' },
      element('span', {}, ...[message].flat()),
      undo && buttonElement('Undo', take, { style: 'small' }),
      buttonElement('Dismiss', () => shown.remove(), { style: 'quiet small' }),
    )
    // What was done since makes an earlier way back stale.
    for (const earlier of place.querySelectorAll('.with-undo')) earlier.remove()
    if (undo !== undefined) shown.classList.add('with-undo')
    place.append(shown)
    while (place.childElementCount > toastsMax) place.firstElementChild?.remove()
    clock.after(shownMs, () => shown.remove())
  }
  return toast
}
