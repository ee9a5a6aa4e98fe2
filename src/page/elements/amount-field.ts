/** A number with its unit, which may be left out. */
import { amountIn, amountOf, type Unit } from './units.ts'
import { element } from './element.ts'

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
