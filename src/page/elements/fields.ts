/** The fields of forms that several views have: an amount with its unit, how long something old stays valid, a search. */
import { amountIn, amountOf, sizeUnits, type Unit } from './format.ts'
import { element, setElementText } from './element.ts'

export interface FieldOptions {
  /** Said below the field. */
  readonly hint?: string
  /** Whether the field is as wide as its form. */
  readonly isWide?: boolean
}

/** Makes a field of a form: its label, and below it what is said about it (call-form.ts). */
export function fieldElement(
  label: string,
  input: HTMLElement,
  { hint, isWide = false }: FieldOptions = {},
): HTMLElement {
  return element(
    'div',
    { class: isWide ? 'field whole' : 'field' },
    element('label', {}, label, input),
    hint === undefined ? undefined : element('p', { class: 'hint' }, hint),
  )
}

/** Makes a text field of a form. */
export function textField(
  name: string,
  placeholder = '',
  inputmode: 'text' | 'numeric' | 'decimal' | 'url' = 'text',
): HTMLInputElement {
  return element('input', {
    name,
    inputmode,
    placeholder,
    autocomplete: 'off',
    spellcheck: 'false',
  })
}

/** A field of a form that is on or off. */
export interface CheckField {
  readonly root: HTMLElement
  readonly input: HTMLInputElement
}

export function checkField(name: string, text: string, hint?: string): CheckField {
  const input = element('input', { type: 'checkbox', name })
  const label = element('label', { class: 'check' }, input, text)
  const below = hint === undefined ? undefined : element('p', { class: 'hint' }, hint)
  return { root: element('div', { class: 'field whole' }, label, below), input }
}

/** A number with its unit, which may be left out. */
export interface AmountField {
  readonly root: HTMLElement
  /** Returns the number in the smallest unit, null if there is none, or the text if that is no number. */
  readonly value: () => number | string | null
  /** Shows a number of the smallest unit. */
  readonly show: (amount: number | null) => void
}

export interface AmountFieldOptions {
  readonly label: string
  /** As the call has it. */
  readonly name: string
  readonly units: readonly Unit[]
  readonly placeholder: string
}

export function amountField({ label, name, units, placeholder }: AmountFieldOptions): AmountField {
  const amount = textField(name, placeholder, 'decimal')
  // The label has the unit, too.
  amount.setAttribute('aria-label', label)
  // What is wrong with it is said in units, too (field-error.ts).
  amount.dataset['amount'] = units === sizeUnits ? 'size' : 'duration'
  const unit = element(
    'select',
    { 'aria-label': `Unit of: ${label}`, name: `unit of ${name}` },
    ...units.map(([text, size]) => element('option', { value: size }, text)),
  )
  unit.value = `${units.at(-1)?.[1]}`
  return {
    root: fieldElement(label, element('span', { class: 'amount' }, amount, unit)),
    value: () => amountOf(amount.value.trim(), Number(unit.value)),
    show(shown) {
      const [count, size] = amountIn(shown, units) ?? ['', unit.value]
      amount.value = `${count}`
      unit.value = `${size}`
    },
  }
}

/** Fills a field with what an address names; if that is no option of a choice, the first one is chosen. */
export function fillField(field: HTMLInputElement | HTMLSelectElement, value: string | null): void {
  field.value = value ?? ''
  if (field instanceof HTMLSelectElement && field.selectedIndex < 0) field.selectedIndex = 0
}

/** A choice of one of some numbers of seconds. */
export interface DurationChoice {
  readonly root: HTMLElement
  readonly seconds: () => number
}

/** How long something old may stay valid beside the new one: as long as the server allows. */
const overlaps = [
  [0, 'none'],
  [3_600, '1 hour'],
  [86_400, '1 day'],
  [604_800, '7 days'],
] as const
/** Chosen: long enough to give the new one to a program. */
const usualOverlapS = 3_600

/** @param what - stays valid */
export function overlapField(what: string): DurationChoice {
  return durationChoice(`${what} stays valid for`, overlaps, usualOverlapS)
}

/** @param usualS - is chosen at first */
export function durationChoice(
  label: string,
  choices: readonly (readonly [seconds: number, text: string])[],
  usualS: number,
): DurationChoice {
  const options = choices.map(([value, text]) => element('option', { value }, text))
  const select = element('select', {}, ...options)
  select.value = `${usualS}`
  return { root: fieldElement(label, select), seconds: () => Number(select.value) }
}

/** A field that narrows the list of a view, which has one; the arrows lead from it to the rows (row-keys.ts). */
export interface SearchField {
  readonly root: HTMLElement
  readonly input: HTMLInputElement
  /** Says something of the text beside the field: what it was taken for, or why it can find nothing. */
  readonly note: (text: string, isWrong?: boolean) => void
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
    placeholder,
    'data-search': '',
    ...on,
  })
  input.value = value ?? ''
  const said = element('span', { class: 'field-note', role: 'status', hidden: true })
  const note = (text: string, isWrong = false): void => {
    said.hidden = text === ''
    setElementText(said, text)
    said.classList.toggle('error', isWrong)
    if (isWrong) input.setAttribute('aria-invalid', 'true')
    else input.removeAttribute('aria-invalid')
  }
  // Within the label it would be part of the name of the field.
  const root = element('div', { class: 'field' }, element('label', {}, label, input), said)
  return { root, input, note }
}
