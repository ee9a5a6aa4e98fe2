/** Says which names in an allowed_updates are those of no type. They are ignored, as the reference ignores them. */
import { isTypesList, unknownTypesIn } from '../queue/filter.ts'

/** So many names are shown, and only those that look like one: anything else may be a secret in the wrong place. */
const shownMax = 3

/**
 * Returns a sentence for the health of the bot.
 *
 * @param text - the parameter
 * @returns undefined if every name is that of a type
 */
export function typesNote(text: string): string | undefined {
  if (!isTypesList(text)) return 'allowed_updates is no JSON list of names and is ignored'
  const unknown = unknownTypesIn(text)
  if (unknown.length === 0) return undefined
  const names = unknown.filter((name) => /^\w{1,32}$/.test(name)).slice(0, shownMax)
  const shown = names.length === 0 ? '' : `: ${names.map((name) => `"${name}"`).join(', ')}`
  return `allowed_updates names types that do not exist${shown}`
}
