/** Returns which word was probably meant, as the end of an error. Pure. */

/** So many letters of a word may be wrong. */
const editsMax = 3
/** And less than this share of them. */
const wrongShareMax = 0.6

/**
 * Returns `, did you mean list?` for the words that are most alike; an empty text if none is alike.
 *
 * @param prefix - what stands before each of the words
 */
export function adviceFor(word: string, words: readonly string[], prefix = ''): string {
  const alike = words
    .map((each) => ({ each, edits: editsBetween(word, each, editsMax) }))
    .filter(({ each, edits }) => edits / Math.max(word.length, each.length) < wrongShareMax)
  const fewest = Math.min(...alike.map(({ edits }) => edits))
  const meant = alike.filter(({ edits }) => edits === fewest).map(({ each }) => prefix + each)
  return meant.length === 0 ? '' : advised(meant)
}

/** Returns that one of these words was probably meant. */
export function advised(meant: readonly string[]): string {
  return `, did you mean ${meant.length === 1 ? '' : 'one of '}${meant.toSorted().join(', ')}?`
}

/**
 * Returns how many letters must be added, left out, replaced, or swapped with the next one; Infinity if that is more than
 * `max`, which keeps the search small.
 */
function editsBetween(a: string, b: string, max: number): number {
  if (max < 0) return Infinity
  if (a === '' || b === '') return a.length + b.length <= max ? a.length + b.length : Infinity
  if (a[0] === b[0]) return editsBetween(a.slice(1), b.slice(1), max)
  const isSwapped = a[0] === b[1] && a[1] === b[0]
  const rests = [
    [a.slice(1), b],
    [a, b.slice(1)],
    [a.slice(1), b.slice(1)],
    ...(isSwapped ? [[a.slice(2), b.slice(2)]] : []),
  ]
  return 1 + Math.min(...rests.map(([x = '', y = '']) => editsBetween(x, y, max - 1)))
}
