/** Says which parameters of a call have no effect, or another one than they seem to. The server answers as the reference does. */
import type { Params } from './params.ts'

/** So many are shown, and only what looks like a name: anything else may be a secret in the wrong place. */
const shownMax = 3
const shownName = /^[a-z_]\w{0,31}(?:\[\w{0,16}\]){0,2}$/i
const shownType = /^[\w.+-]{1,32}\/[\w.+-]{1,32}$/

/**
 * Returns a sentence for the health of the bot. Call this when the parameters were read.
 *
 * @param method - the method that was called
 * @param own - its parameters
 * @returns undefined if all is as it should be
 */
export function paramsNote(
  method: string,
  params: Params,
  own: readonly string[],
): string | undefined {
  const { misread, unreadBody } = params
  let unknown: string[] | undefined
  for (const name of params.names()) {
    if (own.includes(name) || !shownName.test(name)) continue
    unknown ??= []
    unknown.push(name)
  }
  if (misread === undefined && unreadBody === undefined && unknown === undefined) return undefined
  const parts = [
    ...(misread ?? []).slice(0, shownMax),
    ...unknownText(unknown),
    ...bodyText(unreadBody),
  ]
  return `${method} was called with what is ignored: ${parts.join(', ')}`
}

function unknownText(names: readonly string[] | undefined): readonly string[] {
  if (names === undefined) return []
  const shown = names.slice(0, shownMax).map((name) => `"${name}"`)
  return [`there is no parameter ${shown.join(', ')}`]
}

function bodyText(contentType: string | undefined): readonly string[] {
  if (contentType === undefined) return []
  const [type = ''] = contentType.split(';', 1)
  const shown = shownType.test(type) ? ` (${type})` : ''
  return [`the body has a ${shown === '' ? 'form' : 'Content-Type'} that is not read${shown}`]
}
