import { type Child, element } from './element.ts'

/** What the page says: a text, or one with links. */
export type Message = string | readonly Child[]

/** Says something in a place, if it differs from what is there, so that a screen reader repeats nothing. */
export function setMessage(place: HTMLElement, message: Message): void {
  const made = element('span', {}, ...[message].flat())
  if (place.textContent !== made.textContent) place.replaceChildren(...made.childNodes)
}
