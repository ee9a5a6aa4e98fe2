import { type Child, element } from './element.ts'
import type { PagePart } from '../frame/page-part.ts'

/** Facts with their values, in the order in which they are shown. */
export type Facts = readonly (readonly [fact: string, value: Child])[]

/** Makes an empty list of facts. */
export function factList(): PagePart<Facts> {
  const root = element('dl', { class: 'facts' })
  const show = (facts: Facts): void =>
    root.replaceChildren(
      ...facts.flatMap(([fact, value]) => [element('dt', {}, fact), element('dd', {}, value)]),
    )
  return { root, show }
}
