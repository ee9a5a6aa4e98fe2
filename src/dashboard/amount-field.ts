/** A number with its unit, which may be left out. */
import { element } from './element.ts'

/** A unit with its size, the smallest first. */
export type Unit = readonly [name: string, size: number]

export const durationUnits = [
  ['seconds', 1],
  ['minutes', 60],
  ['hours', 3_600],
  ['days', 86_400],
] as const satisfies readonly Unit[]

export const sizeUnits = [
  ['bytes', 1],
  ['KiB', 1_024],
  ['MiB', 1_048_576],
  ['GiB', 1_073_741_824],
] as const satisfies readonly Unit[]

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

/** The server says what is wrong with a text that is no number. */
function amountOf(text: string, size: number): number | string | null {
  if (text === '') return null
  return /^\d+(?:\.\d+)?$/.test(text) ? Math.round(Number(text) * size) : text
}

/** Returns a number in the largest unit in which it is whole, and the size of that unit. */
export function amountIn(
  amount: number | null,
  units: readonly Unit[],
): readonly [count: number, size: number] | undefined {
  if (amount === null) return undefined
  const size = units.findLast(([, each]) => amount % each === 0)?.[1] ?? 1
  return [amount / size, size]
}
