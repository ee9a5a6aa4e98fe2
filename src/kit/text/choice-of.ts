/** Returns words as a choice, such as `a, b or c`. Pure. */
export function choiceOf(words: readonly string[]): string {
  const [last = ''] = words.slice(-1)
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`
}
