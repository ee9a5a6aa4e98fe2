/** Short messages about what was done, at the edge of the page, some with a button that takes it back. */
import type { BrowserClock } from './browser-clock.ts'
import { buttonElement, element } from './element.ts'
import { errorText } from './error-text.ts'
import type { Message } from './message.ts'

/** Takes back what was done. */
export type Undo = () => Promise<unknown>

/** Says what was done. */
export type Toast = (message: Message, undo?: Undo) => void

/** Chosen: long enough to read a sentence and to reach the button. */
const shownMs = 8_000
/** The oldest goes first. */
const toastsMax = 3

/** @param place - where they appear; a screen reader reads what is added to it */
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
    place.append(shown)
    while (place.childElementCount > toastsMax) place.firstElementChild?.remove()
    clock.after(shownMs, () => shown.remove())
  }
  return toast
}
