import { type Child, element } from '../elements/element.ts'

/** What the page says: a text, or one with links. */
export type Said = string | readonly Child[]

/** Says something in a place, if it differs from what is there, so that a screen reader repeats nothing. */
export function setSaid(place: HTMLElement, said: Said): void {
  const made = element('span', {}, ...[said].flat())
  if (place.textContent !== made.textContent) place.replaceChildren(...made.childNodes)
}
