/** Links to the cards of a long page, in a row that stays in sight. The address keeps the card, so that it can be sent. */
import { element } from './element.ts'
import type { PageContext } from '../frame/page-context.ts'
import { queryOf } from '../frame/page-route.ts'

export interface SectionLinks {
  readonly root: HTMLElement
  /** Links to the cards that are shown, and moves to the one that the address names. */
  readonly show: () => void
}

/** @param cards - each begins with its title */
export function sectionLinks(
  { keepQuery }: Pick<PageContext, 'keepQuery'>,
  cards: readonly HTMLElement[],
): SectionLinks {
  /** The card that was moved to last. */
  let opened: string | undefined
  const sections = cards.map((card) => {
    const heading = card.querySelector('h2')
    const name = heading?.textContent ?? ''
    heading?.setAttribute('tabindex', '-1')
    const open = (): void => {
      card.scrollIntoView({ block: 'start' })
      heading?.focus({ preventScroll: true })
      // A card that is still to arrive takes no focus, and is asked for again.
      opened = document.activeElement === heading ? name : undefined
    }
    const onclick = (): void => {
      keepQuery({ section: name })
      open()
    }
    return { card, name, open, link: element('button', { type: 'button', onclick }, name) }
  })
  const root = element(
    'nav',
    { class: 'sections', 'aria-label': 'Settings' },
    ...sections.map(({ link }) => link),
  )
  const show = (): void => {
    for (const { card, link } of sections) link.hidden = card.hidden
    // The address may change while the page stays.
    const named = queryOf(location.hash).get('section')
    const asked = named === opened ? undefined : sections.find(({ name }) => name === named)
    asked?.open()
  }
  return { root, show }
}
