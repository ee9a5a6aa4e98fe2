/** What is wrong with a field of a form, in the words of a person. Pure. */

/** The field that an error is about, and what to say beside it. */
export interface FieldError {
  readonly name: string
  readonly text: string
}

/**
 * Finds the field that an error of the server is about: `max_connections: expected a whole number, got "x"`.
 *
 * @param names - of the fields of the form
 * @returns undefined if the error is about none of them
 */
export function fieldErrorOf(message: string, names: readonly string[]): FieldError | undefined {
  const [name, rest] = names
    .map((each) => [each, afterName(message, each)] as const)
    .find(([, found]) => found !== undefined) ?? [undefined, undefined]
  return name === undefined || rest === undefined ? undefined : { name, text: asked(rest) }
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
function asked(rest: string): string {
  const text = rest.replace(/^expected /, 'Enter ').replace(/, got /, ', not ')
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
