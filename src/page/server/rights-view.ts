/** The first page for a key that may not see all bots: what the key may do, and its bots. */
import { element } from '../elements/element.ts'
import type { PageView } from '../frame/page-context.ts'
import type { RightsShape } from '../frame/shapes.ts'

export function rightsView({ name, scopes, bots }: RightsShape): PageView {
  const root = element(
    'section',
    { class: 'card' },
    element('h1', {}, `Your key: ${name ?? ''}`),
    element('p', {}, `Its scopes: ${scopes.join(', ')}.`),
    bots === null ? element('p', {}, 'To see bots, a key needs the scope read.') : botList(bots),
  )
  return { title: 'Your key', root }
}

function botList(bots: readonly number[]): HTMLElement {
  const links = bots.map((id) => element('li', {}, element('a', { href: `#/bots/${id}` }, `${id}`)))
  return element('div', {}, element('p', {}, 'Its bots:'), element('ul', {}, ...links))
}
