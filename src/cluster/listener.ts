/** The two doors of the server (protocol.md §1): what a connection may ask for depends on the one it came through. */

export type ListenerKind = 'bot' | 'private'

export const listenerKinds: readonly ListenerKind[] = ['bot', 'private']

/** Where a listener listens: a TCP address (`::` is dual stack), or the path of a Unix socket. */
export type ListenAddress =
  | { readonly host: string; readonly port: number }
  | { readonly path: string }

export interface ListenerOptions {
  readonly listener: ListenerKind
  readonly address: ListenAddress
}

/** The address as a person writes it, for logs and error texts. */
export function describeAddress(address: ListenAddress): string {
  if ('path' in address) return address.path
  return address.host.includes(':')
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`
}
