/** Says which parameters of a call have no effect, or another one than they seem to. The server answers as the reference does. */
import type { Params } from './params.ts'
import { isTypesList, unknownTypesIn } from '../queue/allowed-updates.ts'

/** So many are shown, and only what looks like a name: anything else may be a secret in the wrong place. */
const shownMax = 3
const shownName = /^[a-z_][\w-]{0,31}(?:\[\w{0,16}\]){0,2}$/i
const shownType = /^[\w.+-]{1,32}\/[\w.+-]{1,32}$/

/**
 * Returns a sentence for the health of the bot. Call this when the parameters were read.
 *
 * @param method - the method that was called
 * @param known - its parameters
 * @returns undefined if all is as it should be
 */
export function paramsNote(
  method: string,
  params: Params,
  known: readonly string[],
): string | undefined {
  const { misread, unreadBody } = params
  let unknown: string[] | undefined
  for (const name of params.names()) {
    if (known.includes(name)) continue
    unknown ??= []
    unknown.push(name)
  }
  const files = params.unusedFiles()
  // Most calls end here.
  if (!misread && unreadBody === undefined && !unknown && files.length === 0) return undefined
  const parts = [
    ...(misread ?? []).slice(0, shownMax),
    ...(unknown ? [`there is no parameter ${namesText(unknown)}`] : []),
    ...(files.length > 0 ? [`the file ${namesText(files)}`] : []),
    ...bodyText(unreadBody),
  ]
  return `${method} was called with what is ignored: ${parts.join(', ')}`
}

function namesText(names: readonly string[]): string {
  const shown = names.filter((name) => shownName.test(name)).slice(0, shownMax)
  return shown.length === 0 ? 'of such a name' : shown.map((name) => `"${name}"`).join(', ')
}

function bodyText(contentType: string | undefined): readonly string[] {
  if (contentType === undefined) return []
  const [type = ''] = contentType.split(';', 1)
  const shown = shownType.test(type) ? ` (${type})` : ''
  return [`the body has a ${shown === '' ? 'form' : 'Content-Type'} that is not read${shown}`]
}

/**
 * Returns a sentence about the names in an allowed_updates that are those of no type. They are ignored, as the reference ignores
 * them.
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
