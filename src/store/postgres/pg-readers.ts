/**
 * The connections on which the shards of a process read. They lead to the server on which a shard was claimed, and to no
 * later life of it: what is read belongs to the claim.
 */
import { pgReadersMax } from '../limits.ts'
import { KeptConnection } from './kept-connection.ts'
import { PgConnection, type PgServerLife } from './pg-connection.ts'
import type { PgUrl } from './pg-url.ts'

export interface PgReadersOptions {
  readonly database: PgUrl
  /** The `application_name` of the connections. */
  readonly name: string
}

export class PgReaders {
  readonly #options: PgReadersOptions
  /** By the server and its life. */
  readonly #pools = new Map<string, PgReadPool>()

  constructor(options: PgReadersOptions) {
    this.#options = options
  }

  /** Returns the connections to this life of a server, for one shard. The shard ends its use with `leave`. */
  enter(server: PgServerLife): PgReadPool {
    const key = `${server.address.shown} ${server.identity}`
    const pool =
      this.#pools.get(key) ??
      new PgReadPool(
        () => PgConnection.open({ ...this.#options, server }),
        () => this.#pools.delete(key),
      )
    this.#pools.set(key, pool)
    pool.users += 1
    return pool
  }
}

/** Opens up to `pgReadersMax` connections as they are needed, and uses them in turn. */
export class PgReadPool {
  /** The number of shards that read here. */
  users = 0
  readonly #ended: () => void
  readonly #connections: readonly KeptConnection[]
  #next = 0

  constructor(open: () => Promise<PgConnection>, ended: () => void) {
    this.#ended = ended
    this.#connections = Array.from({ length: pgReadersMax }, () => new KeptConnection(open))
  }

  /** Returns a connection. Rejects if this life of the server has ended. */
  async connection(): Promise<PgConnection> {
    const kept = this.#connections[this.#next]
    this.#next = (this.#next + 1) % pgReadersMax
    if (kept === undefined) throw new Error('expected a connection')
    return kept.get()
  }

  /** A shard reads here no longer; the last one closes the connections. */
  leave(): void {
    this.users -= 1
    if (this.users > 0) return
    this.#ended()
    for (const kept of this.#connections) kept.close()
  }
}
