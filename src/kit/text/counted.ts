/** Numbers of things and choices for people: `1 update`, `12,345 bytes`, `a, b or c`. Pure. */

const digits = new Intl.NumberFormat('en')

/** Returns a number with its thousands apart. */
export function grouped(count: number): string {
  return digits.format(count)
}

/** Returns a number with its noun. The plural has one s more, unless `many` is another word. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`
}

/** Returns words as a choice, such as `a, b or c`. */
export function choiceOf(words: readonly string[]): string {
  const [last = ''] = words.slice(-1)
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`
}
