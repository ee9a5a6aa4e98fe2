/** A field that the key `/` leads to (row-keys.ts). A view has one. */
import { element } from './element.ts'

export interface SearchField {
  readonly root: HTMLElement
  readonly input: HTMLInputElement
}

export interface SearchFieldOptions {
  readonly label: string
  readonly placeholder: string
  readonly value: string | null
  /** The reader has typed something, if this is given. */
  readonly oninput?: () => void
  /** The reader has left the field or pressed Enter, if this is given. */
  readonly onchange?: () => void
}

export function searchField({ label, placeholder, value, ...on }: SearchFieldOptions): SearchField {
  const input = element('input', {
    type: 'search',
    maxlength: 64,
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-keyshortcuts': '/',
    placeholder,
    'data-search': '',
    ...on,
  })
  input.value = value ?? ''
  const key = element('kbd', { 'aria-hidden': 'true' }, '/')
  const place = element('span', { class: 'search' }, input, key)
  return { root: element('label', {}, label, place), input }
}
