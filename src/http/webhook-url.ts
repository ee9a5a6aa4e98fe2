/**
 * What the URL of a webhook says: where it leads, and what is requested there.
 *
 * The WHATWG parser reads scheme, user, host and port (IDN to punycode, default ports). It also converts hosts like
 * `https://0x7f.1/` to the address they stand for, before that address is judged. Path and query are sent as the bot wrote
 * them: the parser would resolve `..` and `%2e`, so that an endpoint, or a signature of its URL, would see another path.
 */
import { PostboteError } from '../kit/errors.ts'
import { percentEncoded, requestPath } from './plain-target.ts'

/**
 * Returns a URL without the blanks around it, and with those inside percent-encoded: a URL that was copied often ends with a
 * line end, and this form has one line.
 */
export function tidyUrl(text: string): string {
  return text.trim().replaceAll(blank, percentEncoded)
}

// oxlint-disable-next-line no-control-regex -- these are what it looks for
const blank = /[\u0000-\u0020\u007f]/g

/** The parts of a URL. */
export interface WebhookUrl {
  /** Scheme, user, host and port alone. */
  readonly url: URL
  /** With the query. */
  readonly path: string
}

/** A scheme and what may have a user, a host and a port; the parser ends a host at a backslash, too. */
const partsOfUrl = /^(?:([^:/?#\\]*):\/\/)?([^/?#\\]*)/

/**
 * Reads a tidy URL. Treats one without a scheme as https, as the reference server does.
 *
 * @throws INVALID_WEBHOOK_URL
 */
export function readWebhookUrl(text: string): WebhookUrl {
  const [before = '', scheme = 'https', authority = ''] = partsOfUrl.exec(text) ?? []
  // The parser would turn a scheme with too few slashes into a host.
  const isPlain = authority !== '' && !/^https?:(?!\/\/)/i.test(text)
  const url = isPlain ? tryParse(`${scheme}://${authority}`) : null
  if (url === null || url.hostname === '' || /(^|\.)\./.test(url.hostname)) {
    throw new PostboteError('INVALID_WEBHOOK_URL')
  }
  return { url, path: requestPath(text.slice(before.length)) }
}

/** Returns the host and port of a URL that setWebhook accepted, without the rest, which may be secret. */
export function hostOfWebhook(url: string): string {
  return readWebhookUrl(tidyUrl(url)).url.host
}

function tryParse(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}
