import { copyText } from './copy-text.ts'
import { buttonElement, element, setElementText } from './element.ts'
import type { PagePart } from '../frame/page-part.ts'

/**
 * Makes the place of a secret, which is shown only once, selected, to be copied.
 *
 * @param title - its label
 */
export function secretField(title: string): PagePart<string | undefined> {
  const field = element('input', { readonly: true, spellcheck: 'false' })
  const copy = buttonElement('Copy', () => void act(), { style: 'primary' })
  const act = async (): Promise<void> => {
    setElementText(copy, (await copyText(field)) ? 'Copied' : 'Copy it with the keyboard')
  }
  const label = element('label', {}, title, field)
  const root = element('div', { hidden: true, class: 'secret note controls' }, label, copy)
  const show = (secret: string | undefined): void => {
    // As a property, because an attribute would be in the source of the page.
    field.value = secret ?? ''
    root.hidden = secret === undefined
    setElementText(copy, 'Copy')
    if (secret === undefined) return
    field.focus()
    field.select()
  }
  return { root, show }
}
