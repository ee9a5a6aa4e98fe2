/** Numbers of things for people: `1 update`, `2 updates`, `12,345 bytes`. Pure. */

const digits = new Intl.NumberFormat('en')

/** Returns a number with its thousands apart. */
export function grouped(count: number): string {
  return digits.format(count)
}

/** Returns a number with its noun. The plural has one s more, unless `many` is another word. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`
}
