/** Judges a webhook's URL once, by the rules of setWebhook: where to connect, what to request, and with which credentials. */
import { isIP } from 'node:net'
import { PostboteError } from '../../kit/errors.ts'
import { readWebhookUrl, tidyUrl } from '../../http/webhook-url.ts'
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

/** Reads a webhook URL by the rules of setWebhook. Throws INVALID_WEBHOOK_URL or BAD_WEBHOOK. */
export function parseEndpoint(text: string, rules: EndpointRules): Endpoint {
  const tidy = tidyUrl(text)
  if (tidy.length > webhookUrlLengthMax) throw new PostboteError('INVALID_WEBHOOK_URL')
  const { url, path } = readWebhookUrl(tidy)
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
