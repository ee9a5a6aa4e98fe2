/** Where a worker listens for links: a Unix socket of this machine, or a port of another node. */
export type LinkAddress =
  | { readonly path: string }
  | { readonly host: string; readonly port: number }

/** Reads host:port, or [host]:port for an IPv6 address. The text comes from a row that another node has written. */
export function hostAndPort(text: string): { readonly host: string; readonly port: number } {
  const at = text.lastIndexOf(':')
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, '$1')
  return { host, port: Number(text.slice(at + 1)) }
}
