/** The other servers that settings name: how an origin is read, the proxy, and the upstream server with its paths. */

/**
 * Reads the origin of a server, as `--relay-from`, the relay of a bot and `--portal` name it. It has no path, so nothing in it
 * is secret. A text that was copied may have blanks around it.
 *
 * @returns the scheme, host and port in their usual form; undefined if the text is anything else
 */
export function serverOrigin(given: string): string | undefined {
  const text = given.trim()
  if (!/^https?:\/\/[^/?#@\\\s]+\/?$/i.test(text) || !URL.canParse(text)) return undefined
  const { origin, hostname, port } = new URL(text)
  return hostname === '' || port === '0' ? undefined : origin
}

/** The HTTP proxy of `--proxy`. */
export interface Proxy {
  readonly host: string
  readonly port: number
  /** The value of the Proxy-Authorization header. It is a secret and must never be shown. */
  readonly authorization: string | undefined
}

/** The bot API server of `--upstream`, which gets the calls that this server does not serve itself. */
export interface UpstreamUrl {
  /** For example `https://example.com:8443`. */
  readonly origin: string
  /** The path before `/bot<TOKEN>`: empty, or with a leading slash and without a trailing one. */
  readonly prefix: string
}

export interface UpstreamMethod {
  readonly token: string
  readonly isTest: boolean
  readonly method: string
}

/** Returns the path of a file. It contains the token, so it is a secret. */
export function upstreamFilePath(
  upstream: UpstreamUrl,
  { token, path }: { readonly token: string; readonly path: string },
): string {
  return `${upstream.prefix}/file/bot${token}/${path}`
}

/** Returns the path of a method. It contains the token, so it is a secret. */
export function upstreamPath(
  upstream: UpstreamUrl,
  { token, isTest, method }: UpstreamMethod,
): string {
  return `${upstream.prefix}/bot${token}/${isTest ? 'test/' : ''}${method}`
}
