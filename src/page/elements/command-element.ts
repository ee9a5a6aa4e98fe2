import { copyText } from './copy-text.ts'
import { buttonElement, element, setElementText } from './element.ts'

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
