/** Asks before something is done that cannot be undone. */
import { buttonElement, buttonsElement, element } from './element.ts'

export interface Question {
  /** What would be done, with the number of things that it concerns. */
  readonly title: string
  /** What follows from it. */
  readonly text: string
  /** What the reader chooses before. */
  readonly fields?: HTMLElement
  /** The button that does it. */
  readonly action: string
  /** Whether something is lost. */
  readonly isDanger?: boolean
}

/** Shows a dialog, and returns whether the reader wants it done. Escape means no. */
export function confirmDialog(question: Question): Promise<boolean> {
  return new Promise((resolve) => ask(question, resolve))
}

function ask(
  { title, text, fields, action, isDanger = false }: Question,
  resolve: (isWanted: boolean) => void,
): void {
  const heading = element('h2', { id: 'question' }, title)
  const close = (isWanted: boolean): void => {
    resolve(isWanted)
    dialog.close()
  }
  const act = buttonElement(action, () => isFilled(dialog) && close(true), {
    style: isDanger ? 'danger' : 'primary',
  })
  const cancel = buttonElement('Cancel', () => close(false))
  const dialog = element(
    'dialog',
    { 'aria-labelledby': heading.id },
    heading,
    element('p', { class: 'faint' }, text),
    fields,
    buttonsElement(cancel, act),
  )
  dialog.addEventListener('close', () => {
    resolve(false)
    dialog.remove()
  })
  document.body.append(dialog)
  dialog.showModal()
  if (isDanger) cancel.focus()
  else act.focus()
}

/** Whether no field of a question has what it cannot take; the browser says so beside the first that has. */
function isFilled(dialog: HTMLElement): boolean {
  return [...dialog.querySelectorAll('input')].every((input) => input.reportValidity())
}
