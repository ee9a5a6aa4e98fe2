/**
 * Reads the `allowed_updates` parameter (protocol.md §7). The two methods treat a missing value differently. setWebhook replaces
 * the bot's configuration, so a missing value means the default set. getUpdates is called over and over, and frameworks
 * send the list with their first poll only, so a missing value means "as last set".
 *
 * Both functions take the parameter as the parameter reader returns it: flattened to its text, or undefined if absent.
 */
import { PostboteError } from '../kit/errors.ts'
import { maskOfNumbers, type TypeMask, updateTypeNumber } from '../kit/update-types.ts'
import { kib } from '../kit/limits.ts'

/** A set of types, or `default`: whatever this version of the server delivers to a bot that named none. */
export type AllowedTypes = TypeMask | 'default'

/**
 * Reads the allowed_updates of setWebhook.
 *
 * @param text - the JSON text; undefined, '' and `null` mean the default set
 * @returns the mask of the named types, or `default`; unknown names are ignored
 * @throws BAD_REQUEST if the text is not a JSON array of strings or is longer than 16,384 characters.
 */
export function allowedUpdatesOfWebhook(text: string | undefined): AllowedTypes {
  const names = namesIn(text)
  if (names === 'unreadable') {
    throw new PostboteError('BAD_REQUEST', { detail: "can't parse allowed updates" })
  }
  return names === 'absent' ? 'default' : maskOfNames(names)
}

/**
 * Reads the allowed_updates of getUpdates.
 *
 * @param text - the JSON text
 * @returns the mask of the named types, or `default`; undefined for a missing or unreadable value, which means "as last set", or the
 *   default set if nothing was ever set
 */
export function allowedUpdatesOfPoll(text: string | undefined): AllowedTypes | undefined {
  const names = namesIn(text)
  return typeof names === 'string' ? undefined : maskOfNames(names)
}

/** Whether an allowed_updates is a JSON list of names, or says nothing. */
export function isTypesList(text: string): boolean {
  return namesIn(text) !== 'unreadable'
}

/**
 * Returns the names in an allowed_updates that are none of a type. They are ignored, as the reference ignores them.
 *
 * @param text - the JSON text
 */
export function unknownTypesIn(text: string): readonly string[] {
  const names = namesIn(text)
  if (typeof names === 'string') return []
  return names.filter((name) => !updateTypeNumber.has(name.toLowerCase()))
}

/** Falls back to the default set if no name is known, so that a bot never silently receives nothing. */
function maskOfNames(names: readonly string[]): AllowedTypes {
  const numbers: number[] = []
  for (const name of names) {
    const typeNumber = updateTypeNumber.get(name.toLowerCase())
    if (typeNumber !== undefined) numbers.push(typeNumber)
  }
  return numbers.length === 0 ? 'default' : maskOfNumbers(numbers)
}

/**
 * The text of allowed_updates may have this many characters; all 22 names have 400. A longer text counts as text that is
 * not JSON.
 */
export const allowedUpdatesLengthMax = 16 * kib

function namesIn(text: string | undefined): readonly string[] | 'absent' | 'unreadable' {
  if (text === undefined || text === '') return 'absent'
  if (text.length > allowedUpdatesLengthMax) return 'unreadable'
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return 'unreadable'
  }
  if (parsed === null) return 'absent'
  if (!Array.isArray(parsed)) return 'unreadable'
  const entries: readonly unknown[] = parsed
  return entries.every((entry) => typeof entry === 'string') ? entries : 'unreadable'
}
