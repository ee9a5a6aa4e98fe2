/** How a node proves to the others that it belongs to the cluster. link/link-security.ts makes the options of TLS from it. */
export type LinkSecurity =
  | {
      readonly kind: 'key'
      /** Derived from the file by `linkSecurityFrom`: 32 bytes. */
      readonly key: Uint8Array
    }
  | {
      readonly kind: 'certificates'
      /** In PEM, as the other two; it may be followed by intermediate certificates. */
      readonly cert: string
      readonly key: string
      /** The only authorities that are trusted. */
      readonly ca: string
    }

/** Where the workers of a node accept links of other nodes: worker `n` on the `n`-th port from `port` on. */
export interface NodeLinks {
  readonly host: string
  readonly port: number
  /** The same for other nodes, as host:port: what this node says about itself. */
  readonly address: string
  readonly security: LinkSecurity
}
