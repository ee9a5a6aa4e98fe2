import type { PgUrl } from '../api/pg-url.ts'

/** Where shards are, and which node opens them. The processes of a node pass it to each other. */
export interface PgEngineOptions {
  /** In the order of `postbote database init`. */
  readonly databases: readonly PgUrl[]
  /** The name of this node. */
  readonly node: string
  /** Pushes for the shards of a database are refused while it is larger, in bytes. */
  readonly bytesMax: number | undefined
}
