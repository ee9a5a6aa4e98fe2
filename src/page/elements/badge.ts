import { element, setElementText } from './element.ts'
import type { PagePart } from '../frame/page-part.ts'

/**
 * Makes a state in one word. The style gives each word a color and a sign, so that nobody needs to tell colors apart.
 *
 * @param state - how the style knows the word, if it is another one
 */
export function badgeElement(word: string, state = word): HTMLElement {
  return element('span', { class: `badge ${state}` }, word)
}

/** Makes a state that changes. */
export function badge(): PagePart<string> {
  const root = badgeElement('')
  const show = (word: string): void => {
    root.className = `badge ${word}`
    setElementText(root, word)
  }
  return { root, show }
}
