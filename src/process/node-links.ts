/** How a node proves to the others that it belongs to the cluster. link/link-security.ts makes the options of TLS from it. */
export interface LinkSecurity {
  /** Derived from the file by `linkSecurityFrom`: 32 bytes. */
  readonly key: Uint8Array
}

/** Where the workers of a node accept links of other nodes: worker `n` on the `n`-th port from `port` on. */
export interface NodeLinks {
  readonly host: string
  readonly port: number
  /** The same for other nodes, as host:port: what this node says about itself. */
  readonly address: string
  readonly security: LinkSecurity
}
