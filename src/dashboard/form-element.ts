import { element } from './element.ts'

/**
 * Makes a form whose submission calls a function. The browser sends nothing by itself, and judges nothing: the server says what
 * is wrong, as it does to programs.
 *
 * @param children - elements and texts
 */
export function formElement(
  onSubmit: () => void,
  ...children: readonly (Node | string)[]
): HTMLFormElement {
  const submit = (event: Event): void => {
    event.preventDefault()
    onSubmit()
  }
  return element('form', { novalidate: true, onsubmit: submit }, ...children)
}
