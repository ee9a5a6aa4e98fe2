/** The two listeners of the server (protocol.md §1). The listener that accepted a connection decides which API it may use. */

export type ListenerKind = 'bot' | 'private'

export const listenerKinds: readonly ListenerKind[] = ['bot', 'private']

/** The address of a listener: a TCP address (`::` is dual stack) or the path of a Unix socket. */
export type ListenAddress =
  | { readonly host: string; readonly port: number }
  | { readonly path: string }

export interface ListenerOptions {
  readonly listener: ListenerKind
  readonly address: ListenAddress
  /** Its connections begin with a handshake of TLS, which a worker makes. */
  readonly isTls?: boolean
}

/** What a listener with TLS shows its clients, in PEM. */
export interface ListenerCertificate {
  /** With any intermediate ones after it. */
  readonly cert: string
  readonly key: string
}

/** The certificates of the listeners with TLS. */
export type ListenerCertificates = { readonly [Kind in ListenerKind]?: ListenerCertificate }

/** Returns the address as logs and error messages show it. */
export function describeAddress(address: ListenAddress): string {
  if ('path' in address) return address.path
  return address.host.includes(':')
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`
}
