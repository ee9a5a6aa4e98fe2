/**
 * The connections on which the shards of a process read. They lead to the server on which a shard was claimed, and to no
 * later life of it: what is read belongs to the claim.
 */
import { pgReadersMax } from '../limits.ts'
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
  readonly #open: () => Promise<PgConnection>
  readonly #ended: () => void
  readonly #connections: (Promise<PgConnection> | undefined)[] = []
  #next = 0

  constructor(open: () => Promise<PgConnection>, ended: () => void) {
    this.#open = open
    this.#ended = ended
  }

  /** Returns a connection. Rejects if this life of the server has ended. */
  async connection(): Promise<PgConnection> {
    const at = this.#next
    this.#next = (at + 1) % pgReadersMax
    const connection = await this.#at(at)
    // Whoever waited for the same connection may have replaced it already.
    return connection.isOpen ? connection : this.#at(at)
  }

  async #at(at: number): Promise<PgConnection> {
    const opening = (this.#connections[at] ??= this.#open())
    let connection: PgConnection | undefined
    try {
      connection = await opening
      return connection
    } finally {
      if (connection?.isOpen !== true && this.#connections[at] === opening) {
        this.#connections[at] = undefined
      }
    }
  }

  /** A shard reads here no longer; the last one closes the connections. */
  leave(): void {
    this.users -= 1
    if (this.users > 0) return
    this.#ended()
    for (const opening of this.#connections.splice(0)) {
      opening?.then(
        (connection) => connection.close(),
        () => undefined,
      )
    }
  }
}
