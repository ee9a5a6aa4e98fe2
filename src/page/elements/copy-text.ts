/** Texts that the reader copies: a command, and a secret, which is shown only once. */
import { buttonElement, element, setElementText } from './element.ts'
import type { PagePart } from './page-part.ts'

/**
 * Copies the text of a field to the clipboard, and returns whether that was possible. Without TLS, a page of another machine
 * has no clipboard, but the old way still works there.
 */
export async function copyText(field: HTMLInputElement | HTMLTextAreaElement): Promise<boolean> {
  field.select()
  const isCopied = await navigator.clipboard
    ?.writeText(field.value)
    .then(() => true)
    .catch(() => document.execCommand('copy'))
  return isCopied ?? document.execCommand('copy')
}

/** Makes a command that can be copied. */
export function commandElement(command: string): HTMLElement {
  const copy = buttonElement('Copy', () => void act(), { style: 'small', of: 'the command' })
  const act = async (): Promise<void> => {
    const field = element('textarea', {}, command)
    document.body.append(field)
    const isCopied = await copyText(field)
    field.remove()
    setElementText(copy, isCopied ? 'Copied' : 'Copy it by hand')
  }
  return element('div', { class: 'command' }, element('code', {}, command), copy)
}

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
