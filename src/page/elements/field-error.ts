/** What is wrong, in the words of a person: with a field of a form, or with a call. Pure. */
import { asSentence, formatAge, formatBytes } from './format.ts'

/** The field that an error is about, and what to say beside it. */
export interface FieldError {
  readonly name: string
  readonly text: string
}

/** What the reader gives in a field: a choice of boxes, or an amount, which the server knows in its smallest unit. */
export type FieldKind = 'text' | 'choice' | 'duration' | 'size'

/**
 * Finds the field that an error of the server is about: `max_connections: expected a whole number, got "x"`.
 *
 * @param kinds - of the fields of the form, by their names
 * @returns undefined if the error is about none of them
 */
export function fieldErrorOf(
  message: string,
  kinds: ReadonlyMap<string, FieldKind>,
): FieldError | undefined {
  for (const [name, kind] of kinds) {
    const rest = afterName(message, name)
    if (rest !== undefined) return { name, text: asSentence(askedOf(kind, rest)) }
  }
  return undefined
}

/** An entry of a list and a field of an object are named with their place, such as `retry_delays[3]` and `bots/0`. */
function afterName(message: string, name: string): string | undefined {
  const words = message.split(' ')
  const at = words.findIndex(
    (word) =>
      word.startsWith(name) && word.endsWith(':') && ':[./'.includes(word.charAt(name.length)),
  )
  return at < 0 ? undefined : words.slice(at + 1).join(' ')
}

/** Says what to do in place of what was expected. */
function askedOf(kind: FieldKind, rest: string): string {
  if (kind === 'choice' && rest.startsWith('expected a list')) return 'Choose at least one.'
  const text = rest
    .replace(/^expected /, 'Enter ')
    .replace('a string of at most', 'at most')
    .replace(/ from (\d{1,16}) to 9007199254740991\b/, ' of $1 or more')
    .replace(/(,?) or null\b/, '$1 or nothing')
    // What is missing needs no naming, and a list is there to be seen.
    .replace(/, got (?:none|""|null|a list of \d{1,5})(?=\.?$)/, '')
    .replace(/, got a value of (\d{1,9}) characters/, ', not $1')
    .replace(/, got /, ', not ')
  return kind === 'duration' || kind === 'size' ? inUnits(kind, text) : text
}

/** The reader has chosen a unit, so the number that was sent says nothing. */
function inUnits(kind: 'duration' | 'size', text: string): string {
  const [what, format] =
    kind === 'duration' ? (['a time', formatAge] as const) : (['a size', formatBytes] as const)
  return text
    .replace(
      /a whole number from (\d{1,16}) to (\d{1,16})/,
      (_all, least: string, most: string) =>
        `${what} from ${format(Number(least))} to ${format(Number(most))}`,
    )
    .replace(/, not \d{1,25}$/, '')
}

/** Says without the words of the protocol why a call has failed, of which a field may be the reason. */
export function plainText(message: string): string {
  const [, seconds] = /^Too Many Requests: retry after (\d+)$/.exec(message) ?? []
  if (seconds !== undefined) return `Too many calls at once. Try again in ${seconds} s.`
  const text = message.replace(/^Bad Request: /, '').replace(/^bad webhook: /, '')
  return /^[\w./[\]]+: /.test(text) ? text : asSentence(text)
}
