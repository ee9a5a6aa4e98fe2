/** Links to the cards of a long page, in a row that stays in sight. The address keeps the card, so that it can be sent. */
import { element } from './element.ts'
import type { PageContext } from '../frame/page-context.ts'

export interface SectionLinks {
  readonly root: HTMLElement
  /** Links to the cards that are shown, and the first time moves to the one that the address names. */
  readonly show: () => void
}

/** @param cards - each begins with its title */
export function sectionLinks(
  { query, keepQuery }: Pick<PageContext, 'query' | 'keepQuery'>,
  cards: readonly HTMLElement[],
): SectionLinks {
  const sections = cards.map((card) => {
    const heading = card.querySelector('h2')
    const name = heading?.textContent ?? ''
    heading?.setAttribute('tabindex', '-1')
    const open = (): void => {
      card.scrollIntoView({ block: 'start' })
      heading?.focus({ preventScroll: true })
    }
    const onclick = (): void => {
      keepQuery({ section: name })
      open()
    }
    return { card, name, open, link: element('button', { type: 'button', onclick }, name) }
  })
  let wanted = query.get('section')
  const root = element(
    'nav',
    { class: 'sections', 'aria-label': 'Settings' },
    ...sections.map(({ link }) => link),
  )
  const show = (): void => {
    for (const { card, link } of sections) link.hidden = card.hidden
    sections.find(({ name }) => name === wanted)?.open()
    wanted = null
  }
  return { root, show }
}
