/** `--upstream`: the bot API server that gets what this one does not do itself. */

export interface UpstreamUrl {
  /** `https://example.com:8443` */
  readonly origin: string
  /** The path in front of `/bot<TOKEN>`; empty, or begins with a slash and ends without one. */
  readonly prefix: string
}

export interface UpstreamMethod {
  readonly token: string
  readonly isTest: boolean
  readonly method: string
}

/** A secret, as the token in it. */
export function upstreamFilePath(
  upstream: UpstreamUrl,
  { token, path }: { readonly token: string; readonly path: string },
): string {
  return `${upstream.prefix}/file/bot${token}/${path}`
}

/** A secret, as the token in it. */
export function upstreamPath(
  upstream: UpstreamUrl,
  { token, isTest, method }: UpstreamMethod,
): string {
  return `${upstream.prefix}/bot${token}/${isTest ? 'test/' : ''}${method}`
}
