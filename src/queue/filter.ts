/**
 * What `allowed_updates` means (SPEC 7). The methods differ: setWebhook replaces a bot's whole configuration, so
 * nothing said means the default set; getUpdates is called over and over, and frameworks send the list with their
 * first poll only, so nothing said means "as last set".
 *
 * Both take the parameter as the parameter reader gives it: flattened to its text, undefined where absent.
 */

import { PostboteError } from '../errors.ts'
import { allowedUpdatesLengthMax } from '../limits.ts'
import { type TypeMask, updateTypeNumber } from './update-types.ts'

/** A set of types, or `default`: whatever this version of the server delivers to a bot that named none. */
export type AllowedTypes = TypeMask | 'default'

/** Throws BAD_REQUEST for a text that is not a JSON array of strings. */
export function allowedUpdatesOfWebhook(text: string | undefined): AllowedTypes {
  const names = namesIn(text)
  if (names === 'unreadable') {
    throw new PostboteError('BAD_REQUEST', { detail: "can't parse allowed updates" })
  }
  return names === 'absent' ? 'default' : maskOfNames(names)
}

/** Undefined means: as last set, and the default set where nothing was ever set. */
export function allowedUpdatesOfPoll(text: string | undefined): AllowedTypes | undefined {
  const names = namesIn(text)
  return typeof names === 'string' ? undefined : maskOfNames(names)
}

/** Whether a bot with this mask is given updates of this type. */
export function isAllowed(mask: TypeMask, typeNumber: number): boolean {
  return (mask & (1 << typeNumber)) !== 0
}

/** The default set where no name is known: a bot never silently receives nothing. */
function maskOfNames(names: readonly string[]): AllowedTypes {
  let mask = 0
  for (const name of names) {
    const typeNumber = updateTypeNumber.get(name.toLowerCase())
    if (typeNumber !== undefined) mask |= 1 << typeNumber
  }
  return mask === 0 ? 'default' : mask
}

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
