/**
 * The connections on which the shards of a process read. They lead to the server on which a shard was claimed, and to no
 * later life of it: what is read belongs to the claim.
 *
 * When the database has moved to another server, these connections and those of the claims are ended. Otherwise each of
 * them would find out by its own time limit that a frozen server does not respond.
 */
import assert from 'node:assert/strict'
import { pgReadersMax } from '../../store/limits.ts'
import { PgConnection, type PgServerLife, ReopeningConnection } from './pg-connection.ts'
import type { PgUrl } from '../../api/pg-url.ts'

export class PgReaders {
  readonly #database: PgUrl
  readonly #name: string
  /** By the server and its life. */
  readonly #pools = new Map<string, PgReadPool>()

  /** @param name - the `application_name` of the connections */
  constructor(database: PgUrl, name: string) {
    this.#database = database
    this.#name = name
  }

  /** Returns the connections to the life of the server that a shard writes to. The shard ends its use with `leave`. */
  enter(writer: PgConnection): PgReadPool {
    const { server } = writer
    const key = `${server.address.shown} ${server.identity}`
    const pool =
      this.#pools.get(key) ??
      new PgReadPool(
        server,
        () => PgConnection.open({ database: this.#database, name: this.#name, server }),
        () => void this.#pools.delete(key),
      )
    this.#pools.set(key, pool)
    pool.enter(writer)
    return pool
  }

  /** Ends all connections to lives of servers before this one, those of the writers included. */
  endBefore(identity: string): void {
    for (const pool of this.#pools.values()) if (pool.server.identity < identity) pool.end()
  }
}

const hasMoved = new Error('the database has moved to another server')

/** Opens up to `pgReadersMax` connections as they are needed, and uses them in turn. */
export class PgReadPool {
  readonly server: PgServerLife
  /** The connections of the shards that read here. */
  readonly #writers = new Set<PgConnection>()
  readonly #onUnused: () => void
  readonly #connections: readonly ReopeningConnection[]
  /** Reads that wait for a connection. */
  readonly #waiting = new Set<(error: Error) => void>()
  #next = 0
  #hasEnded = false

  constructor(server: PgServerLife, open: () => Promise<PgConnection>, onUnused: () => void) {
    this.server = server
    this.#onUnused = onUnused
    this.#connections = Array.from({ length: pgReadersMax }, () => new ReopeningConnection(open))
  }

  /** A shard reads here from now on. If this life of the server has ended, its connection ends, too. */
  enter(writer: PgConnection): void {
    this.#writers.add(writer)
    if (this.#hasEnded) writer.fail(hasMoved)
  }

  /** Returns a connection. Rejects if this life of the server has ended. */
  connection(): Promise<PgConnection> {
    const kept = this.#connections[this.#next]
    this.#next = (this.#next + 1) % pgReadersMax
    return new Promise((resolve, reject) => {
      if (kept === undefined || this.#hasEnded) {
        reject(hasMoved)
        return
      }
      this.#waiting.add(reject)
      void kept
        .get()
        .then(resolve, reject)
        .finally(() => this.#waiting.delete(reject))
    })
  }

  /** A shard reads here no longer; the last one closes the connections. */
  leave(writer: PgConnection): void {
    assert(this.#writers.delete(writer), 'a shard leaves the pool that it has entered, once')
    if (this.#writers.size > 0) return
    this.#onUnused()
    this.#close()
  }

  /** Ends all connections at once: reads reject, and the outcome of writes is unknown. */
  end(): void {
    this.#hasEnded = true
    this.#close()
    for (const reject of this.#waiting) reject(hasMoved)
    for (const writer of this.#writers) writer.fail(hasMoved)
  }

  #close(): void {
    for (const kept of this.#connections) kept.close()
  }
}
