import type { LinkSecurity } from './link/link-security.ts'

/** Where the workers of a node accept links of other nodes: worker `n` on the `n`-th port from `port` on. */
export interface NodeLinks {
  readonly host: string
  readonly port: number
  /** The same for other nodes, as host:port: what this node says about itself. */
  readonly address: string
  readonly security: LinkSecurity
}
