/** Where a worker listens for links: a Unix socket of this machine, or a port of another node. */
export type LinkAddress =
  | { readonly path: string }
  | { readonly host: string; readonly port: number }
