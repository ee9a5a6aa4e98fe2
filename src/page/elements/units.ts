/** Numbers with units. Pure. */

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

/** Returns the number that a text is, or the text: the server says what is wrong with it. */
export function wholeNumberOr(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text
}

/** The server says what is wrong with a text that is no number. */
export function amountOf(text: string, size: number): number | string | null {
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
