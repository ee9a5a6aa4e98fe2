import type { PgUrl } from './pg-url.ts'

/** Where shards are, and which node opens them. The processes of a node pass it to each other. */
export interface PgEngineOptions {
  readonly database: PgUrl
  /** The name of this node. */
  readonly node: string
  /** Pushes are refused while the database is larger, in bytes. */
  readonly bytesMax: number | undefined
}
