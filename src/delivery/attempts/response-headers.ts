/**
 * The headers of a response that is no success, as they are kept and shown to operators: a few short ones, without secrets. They
 * are kept as one text with a line for each header, `name: value`, so that attempts share equal ones as they share bodies.
 */
import { kib } from '../../kit/limits.ts'
import type { SecretFinder } from '../../kit/text/secret-finder.ts'
import { secretBytesMax, shownText } from '../../kit/text/shown-text.ts'
import type { ShownHeader } from '../endpoint/request-headers.ts'

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

/** This many headers of a response that is no success are shown. Chosen: a usual response has 10. */
export const shownHeadersMax = 16
/** A header with a longer name is not shown. Names in use are shorter than half of this. */
const shownHeaderNameLengthMax = 64
/** These headers have at most this many bytes together: as many as the body that is shown by default. */
export const shownHeadersBytesMax = 1 * kib
/** Each of them is cut at this length, so that a long policy does not take the room of all others. */
export const shownHeaderBytesMax = 256

/**
 * Headers that carry secrets, or may. `Date` differs in each response, and attempts have their own time; without it, most
 * responses of an endpoint have equal headers.
 */
const hiddenName =
  /^(?:date|link|refresh)$|auth|cookie|token|secret|key|session|credential|password|signature|jwt|csrf|xsrf/i
/** Their values are addresses, whose path and query are as secret as those of the webhook. */
const addressNames: ReadonlySet<string> = new Set(['location', 'content-location'])

/**
 * Returns the headers that are shown, as a text.
 *
 * @param secrets - finds what must not be shown
 * @returns undefined without such a header
 */
export function shownHeaders(headers: ResponseHeaders, secrets: SecretFinder): string | undefined {
  const raw = Object.entries(headers)
    .filter(([name]) => name.length <= shownHeaderNameLengthMax && !hiddenName.test(name))
    .slice(0, shownHeadersMax)
    .map(([name, value = '']) => [name, beginningOf(value)] as const)
    .map(([name, value]) => `${name}: ${publicPart(name, value)}`)
  if (raw.length === 0) return undefined
  const lines: string[] = []
  let bytesLeft = shownHeadersBytesMax
  for (const line of raw) {
    if (bytesLeft <= 0) break
    const bytesMax = Math.min(shownHeaderBytesMax, bytesLeft)
    const shown = shownText(line, { bytesMax, secrets })
    lines.push(shown)
    bytesLeft -= Buffer.byteLength(shown) + 1
  }
  return lines.join('\n')
}

/** undici reads them as Latin-1, but secrets are compared as the UTF-8 that paths have. No more is used than is searched. */
function beginningOf(value: string | readonly string[]): string {
  const beginning = String(value).slice(0, shownHeaderBytesMax + secretBytesMax)
  return Buffer.from(beginning, 'latin1').toString()
}

/** Returns the headers of a text that `shownHeaders` has made. */
export function shownHeadersIn(text: string): readonly ShownHeader[] {
  return text.split('\n').map((line) => {
    const end = line.indexOf(': ')
    if (end < 0) return { name: line, value: '' }
    return { name: line.slice(0, end), value: line.slice(end + 2) }
  })
}

function publicPart(name: string, value: string): string {
  if (!addressNames.has(name)) return value
  const origin = /^https?:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(value)
  return origin === null ? '***' : `${value.slice(0, value.indexOf(':'))}://${origin[1]}/***`
}
