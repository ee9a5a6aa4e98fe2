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
