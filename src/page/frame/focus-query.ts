/** An address may name a field: what it leads to is open there, with the focus in the field. */
import { queryOf } from './page-route.ts'

/** The fields that an address can name. */
export type FocusName = 'push' | 'check'

export function focusQuery(name: FocusName): string {
  return `?focus=${name}`
}

/** Makes an element the one that an address names so. */
export function focusable<Named extends HTMLElement>(named: Named, name: FocusName): Named {
  named.dataset['focus'] = name
  return named
}

/** Moves the focus to what the address names, if that is there. */
export function focusNamed(root: ParentNode): void {
  const wanted = queryOf(location.hash).get('focus')
  if (wanted === null) return
  const fields = [...root.querySelectorAll<HTMLElement>('[data-focus]')]
  fields.find((field) => field.dataset['focus'] === wanted)?.focus()
}
