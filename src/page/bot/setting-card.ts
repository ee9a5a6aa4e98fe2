/** A card of the settings: what it is about beside its fields, so that all of them line up. */
import { type Child, element } from '../elements/element.ts'

export function settingCard(
  title: string,
  about: Child,
  ...children: readonly Child[]
): HTMLElement {
  const text = typeof about === 'string' ? element('p', { class: 'faint' }, about) : about
  return element(
    'section',
    { class: 'card setting' },
    element('div', { class: 'about' }, element('h2', {}, title), text),
    element('div', {}, ...children),
  )
}
