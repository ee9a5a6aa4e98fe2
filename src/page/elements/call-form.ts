/**
 * Forms that make a call. What the server refuses is said beside the field that it is about, as the names of the fields are those of
 * the call. A form of settings can be sent only after something was changed in it.
 */
import { buttonsElement, type Child, element, formElement, submitElement } from './element.ts'
import { errorText, type Message, statusLine } from './messages.ts'
import { type FieldKind, fieldErrorOf } from './field-error.ts'

export interface CallForm {
  readonly root: HTMLFormElement
  /** Whether the reader has changed something that was not sent. What is read meanwhile must not replace it. */
  readonly isEdited: () => boolean
  /** Call this after the fields were filled in with what the server has. */
  readonly settle: () => void
}

export interface CallFormOptions {
  /** The text of its button. */
  readonly submit: string
  /** Makes the call, and returns what is to be said in the form. */
  readonly send: () => Promise<Message>
  /** `makes`: it can be sent as it is shown first, because it makes something. `danger`: what it does cannot be undone. */
  readonly kind?: 'sets' | 'makes' | 'danger'
  /** Buttons beside its own. */
  readonly others?: readonly Child[]
}

const unchanged = 'Nothing has changed.'

/** Makes a form of fields, which fieldElement makes. */
export function callForm(
  { submit, send, kind = 'sets', others = [] }: CallFormOptions,
  ...fields: readonly Child[]
): CallForm {
  const result = statusLine('', 'alert')
  const button = submitElement(submit)
  if (kind === 'danger') button.className = 'danger'
  let settled = ''
  let isSending = false
  const isEdited = (): boolean => contentOf(root) !== settled
  const mark = (): void => {
    // A button that is really disabled would lose the focus.
    button.setAttribute('aria-disabled', `${kind === 'sets' && !isEdited()}`)
  }
  const settle = (): void => {
    settled = contentOf(root)
    mark()
  }
  const run = async (): Promise<Message> => {
    try {
      const message = await send()
      result.root.className = ''
      settle()
      return message
    } catch (error) {
      result.root.className = 'error'
      const isSaid = error instanceof Error && showFieldError(root, error.message)
      return isSaid ? '' : errorText(error)
    } finally {
      isSending = false
    }
  }
  const sent = (): void => {
    clearFieldErrors(root)
    if (kind === 'sets' && !isEdited()) {
      result.root.className = ''
      result.say(unchanged)
    } else if (!isSending) {
      isSending = true
      result.run(run)
    }
  }
  const root = formElement(
    sent,
    element('div', { class: 'fields' }, ...fields),
    element('div', { class: 'foot' }, result.root, buttonsElement(...others, button)),
  )
  root.addEventListener('input', ({ target }) => {
    if (target instanceof Element) clearFieldErrors(target.closest('.field') ?? root)
    if (result.root.textContent === unchanged) result.say('')
    mark()
  })
  settle()
  return { root, isEdited, settle }
}

/** What the fields have, as one text. */
function contentOf(form: HTMLFormElement): string {
  return JSON.stringify([...new FormData(form)])
}

/** Says what is wrong beside the field that an error is about, and leads there. Returns false if it is about none. */
function showFieldError(form: HTMLFormElement, message: string): boolean {
  const named = [...form.querySelectorAll<HTMLElement>('[name]')]
  const kinds = new Map(named.map((each) => [each.getAttribute('name') ?? '', kindOf(each)]))
  const found = fieldErrorOf(message, kinds)
  const input = named.find((each) => each.getAttribute('name') === found?.name)
  const field = input?.closest('.field')
  if (found === undefined || input === undefined || !field) return false
  const id = `wrong-${found.name}`
  field.append(element('p', { class: 'error wrong', id }, found.text))
  input.setAttribute('aria-invalid', 'true')
  input.setAttribute('aria-describedby', id)
  const closed = input.closest('details')
  if (closed !== null) closed.open = true
  input.focus()
  return true
}

function kindOf(input: HTMLElement): FieldKind {
  if (input.getAttribute('type') === 'checkbox') return 'choice'
  const { amount } = input.dataset
  return amount === 'duration' || amount === 'size' ? amount : 'text'
}

function clearFieldErrors(root: Element): void {
  for (const input of root.querySelectorAll('[aria-invalid]')) {
    input.removeAttribute('aria-invalid')
    input.removeAttribute('aria-describedby')
  }
  for (const wrong of root.querySelectorAll('.wrong')) wrong.remove()
}
