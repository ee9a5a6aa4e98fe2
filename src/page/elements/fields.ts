/** The fields of forms that several views have: an amount with its unit, how long something old stays valid, a search. */
import { amountIn, amountOf, type Unit } from './format.ts'
import { element } from './element.ts'

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
  readonly units: readonly Unit[]
  readonly placeholder: string
  readonly isReadonly: boolean
  /** The reader has changed something. */
  readonly onEdit: () => void
}

export function amountField(options: AmountFieldOptions): AmountField {
  const { label, units, placeholder, isReadonly, onEdit } = options
  const amount = element('input', {
    // The label has the unit, too.
    'aria-label': label,
    inputmode: 'decimal',
    autocomplete: 'off',
    placeholder,
    readonly: isReadonly,
    oninput: onEdit,
  })
  const unit = element(
    'select',
    { 'aria-label': `Unit of: ${label}`, disabled: isReadonly, onchange: onEdit },
    ...units.map(([name, size]) => element('option', { value: size }, name)),
  )
  unit.value = `${units.at(-1)?.[1]}`
  return {
    root: element('label', {}, label, element('span', { class: 'amount' }, amount, unit)),
    value: () => amountOf(amount.value.trim(), Number(unit.value)),
    show(shown) {
      const [count, size] = amountIn(shown, units) ?? ['', unit.value]
      amount.value = `${count}`
      unit.value = `${size}`
    },
  }
}

/** How long something old may stay valid beside the new one, in seconds: as long as the server allows. */
const overlaps = [
  [0, 'not at all'],
  [3_600, 'for an hour'],
  [86_400, 'for a day'],
  [604_800, 'for a week'],
] as const

/** A choice of how long something old stays valid. */
export interface OverlapField {
  readonly root: HTMLElement
  readonly seconds: () => number
}

/** @param label - what stays valid */
export function overlapField(label: string): OverlapField {
  const options = overlaps.map(([value, text]) => element('option', { value }, text))
  const select = element('select', {}, ...options)
  return { root: element('label', {}, label, select), seconds: () => Number(select.value) }
}

/** A field that narrows the list of a view, which has one; the arrows lead from it to the rows (row-keys.ts). */
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
    placeholder,
    'data-search': '',
    ...on,
  })
  input.value = value ?? ''
  return { root: element('label', {}, label, input), input }
}
