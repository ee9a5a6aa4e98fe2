/**
 * Parses a webhook's URL once: where to connect, what to request, and with which credentials.
 *
 * The WHATWG parser reads scheme, user, host and port (IDN to punycode, default ports). It also converts hosts like
 * `https://0x7f.1/` to the address they stand for, before that address is judged. Path and query are sent as the bot wrote
 * them: the parser would resolve `..` and `%2e`, so that an endpoint, or a signature of its URL, would see another path.
 */
import { isIP } from 'node:net'
import { PostboteError } from '../../kit/errors.ts'
import { percentEncoded, requestPath } from '../../http/plain-target.ts'
import { webhookUrlLengthMax } from '../limits.ts'

export interface Endpoint {
  /** Scheme, host and port, as in the Host header. */
  readonly origin: string
  readonly secure: boolean
  /** An ASCII name, or an address without brackets. */
  readonly host: string
  /** True if the host is an address, so that there is nothing to resolve. */
  readonly hostIsAddress: boolean
  readonly port: number
  readonly path: string
  /** The Authorization header for the userinfo of the URL. */
  readonly authorization: string | undefined
}

export interface EndpointRules {
  /** `--local`: http and any port are allowed. */
  readonly local: boolean
}

export const publicPorts: ReadonlySet<number> = new Set([80, 88, 443, 8443])

/**
 * Returns a URL without the blanks around it, and with those inside percent-encoded: a URL that was copied often ends with a
 * line end, and this form has one line.
 */
export function tidyUrl(text: string): string {
  return text.trim().replaceAll(blank, percentEncoded)
}

/** Reads a webhook URL by the rules of setWebhook. Throws INVALID_WEBHOOK_URL or BAD_WEBHOOK. */
export function parseEndpoint(text: string, rules: EndpointRules): Endpoint {
  const tidy = tidyUrl(text)
  if (tidy.length > webhookUrlLengthMax) throw new PostboteError('INVALID_WEBHOOK_URL')
  const { url, path } = parseUrl(tidy)
  const secure = url.protocol === 'https:'
  if (!secure && !(rules.local && url.protocol === 'http:')) {
    throw badWebhook('An HTTPS URL must be provided for webhook')
  }
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  // No connection to port 0 is possible.
  if (port === 0) throw new PostboteError('INVALID_WEBHOOK_URL')
  if (!rules.local && !publicPorts.has(port)) {
    throw badWebhook('Webhook can be set up only on ports 80, 88, 443 or 8443')
  }
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname
  return {
    origin: url.origin,
    secure,
    host,
    hostIsAddress: isIP(host) !== 0,
    port,
    path,
    authorization: basicAuthorization(url),
  }
}

/** Returns the host and port of a URL that setWebhook accepted, without the rest, which may be secret. */
export function hostOfWebhook(url: string): string {
  return parseUrl(tidyUrl(url)).url.host
}

// oxlint-disable-next-line no-control-regex -- these are what it looks for
const blank = /[\u0000-\u0020\u007f]/g

/** A scheme and what may have a user, a host and a port; the parser ends a host at a backslash, too. */
const partsOfUrl = /^(?:([^:/?#\\]*):\/\/)?([^/?#\\]*)/

/** Treats a URL without a scheme as https, as the reference server does. */
function parseUrl(text: string): { readonly url: URL; readonly path: string } {
  const [before = '', scheme = 'https', authority = ''] = partsOfUrl.exec(text) ?? []
  // The parser would turn a scheme with too few slashes into a host.
  const isPlain = authority !== '' && !/^https?:(?!\/\/)/i.test(text)
  const url = isPlain ? tryParse(`${scheme}://${authority}`) : null
  if (url === null || url.hostname === '' || /(^|\.)\./.test(url.hostname)) {
    throw new PostboteError('INVALID_WEBHOOK_URL')
  }
  return { url, path: requestPath(text.slice(before.length)) }
}

function tryParse(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}

function basicAuthorization(url: URL): string | undefined {
  if (url.username === '' && url.password === '') return undefined
  try {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    return `Basic ${Buffer.from(pair).toString('base64')}`
  } catch {
    throw new PostboteError('INVALID_WEBHOOK_URL')
  }
}

export function badWebhook(detail: string, cause?: unknown): PostboteError {
  return new PostboteError('BAD_WEBHOOK', { detail, cause })
}
