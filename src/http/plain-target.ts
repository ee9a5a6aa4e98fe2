/**
 * The one spelling of a request target that all other code sees. HTTP lets a client write the same target in many ways:
 * the absolute form that proxies get (`http://host/v1/events`), percent-encoding of characters that need none
 * (`/v1/%65vents`), and a fragment. Every later look at a target is a comparison with a plain path, so it would miss them.
 *
 * Nothing is decoded twice and no boundary moves: `%2F` and `%25` stay, and dot segments and empty segments are not resolved,
 * because no path of this server has any.
 */

const parts = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?# ]*)?([^?#]*)(\?[^#]*)?/i
/** The unreserved characters of RFC 3986, 2.3, and the colon of a token, which has no meaning of its own in a path. */
const encodedPlain = /%(?:2[de]|3[\da]|4[1-9a-f]|5[\daf]|6[1-9a-f]|7[\dae])/gi
/** The router refuses such a path. Decoded in part it could be another one: `%%37%34` would become `%74`. */
const malformed = /%(?![\da-f]{2})/i

/**
 * Returns the target in its plain spelling.
 *
 * @param target - The target of a request line, or the beginning of one.
 */
export function plainTarget(target: string): string {
  if (isUsual(target)) return target
  const [, path = '', query = ''] = parts.exec(target) ?? []
  const plain = malformed.test(path) ? path : path.replaceAll(encodedPlain, characterOf)
  return (plain === '' ? '/' : plain) + query
}

/** Whether it is spelled as nearly all clients do. This runs for every request and takes 0.1 us. */
function isUsual(target: string): boolean {
  if (target.charCodeAt(0) !== 0x2f || target.includes('#')) return false
  const percent = target.indexOf('%')
  if (percent === -1) return true
  const query = target.indexOf('?')
  return query !== -1 && query < percent
}

function characterOf(encoded: string): string {
  return String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
}

/** All that a request line cannot have, and what URLs may not have by RFC 3986. */
const notInUrl = /[^!-~]|["<>\\^`{|}]/gu

/** Returns a character as a request line can have it. */
export function percentEncoded(character: string): string {
  return Buffer.from(character)
    .toString('hex')
    .toUpperCase()
    .replaceAll(/../g, (byte) => `%${byte}`)
}

/** Returns the path and query of a URL, from the end of its host on, as it is written in a request. */
export function requestPath(rest: string): string {
  const [sent = ''] = rest.split('#', 1)
  return (sent.startsWith('/') ? sent : `/${sent}`).replaceAll(notInUrl, percentEncoded)
}
