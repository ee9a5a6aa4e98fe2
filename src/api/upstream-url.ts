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
