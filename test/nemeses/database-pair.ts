/**
 * A PostgreSQL primary with a synchronous standby, which change places at every failover. Both keep to two ports, so that a
 * URL with two servers stays valid.
 *
 *     const pair = await DatabasePair.start(t)
 *     await pair.primary.crash()
 *     await pair.promote()        // the standby is the primary now, and waits for no standby
 *     await pair.rebuild()        // a new synchronous standby, on the port of the primary that failed
 */
import assert from 'node:assert/strict'
import { Postgres } from '../support/server/postgres.ts'
import type { EndingTest } from '../support/server/server.ts'
import { witnessSettings } from './epoch-witness.ts'

/** A standby whose primary was away asks for it again after this pause; the default of 5 s would be most of an event. */
const settings = { wal_retrieve_retry_interval: '500ms', ...witnessSettings }

export class DatabasePair {
  readonly ports: readonly [number, number]
  #primary: Postgres
  #standby: Postgres | undefined
  #former: Postgres | undefined

  constructor(primary: Postgres, standby: Postgres) {
    this.#primary = primary
    this.#standby = standby
    this.ports = [primary.port, standby.port]
  }

  /** The servers are removed at the end of the test. */
  static async start(t: EndingTest): Promise<DatabasePair> {
    const primary = await Postgres.start({ settings })
    const pair = new DatabasePair(primary, await primary.standby({ isSynchronous: true }))
    t.after(async () => {
      for (const each of [pair.#primary, pair.#standby, pair.#former]) await each?.remove()
    })
    return pair
  }

  get primary(): Postgres {
    return this.#primary
  }

  get standby(): Postgres {
    assert(this.#standby !== undefined, 'there is no standby')
    return this.#standby
  }

  /** Makes the standby the primary, whatever has become of the other one. */
  async promote(): Promise<void> {
    const { standby } = this
    await standby.promote()
    this.#former = this.#primary
    this.#primary = standby
    this.#standby = undefined
  }

  /** Removes the former primary, and starts a standby in its place. */
  async rebuild(): Promise<void> {
    assert(this.#former !== undefined, 'there was no failover')
    const { port } = this.#former
    await this.#former.remove()
    this.#former = undefined
    this.#standby = await this.#primary.standby({ isSynchronous: true, port })
  }
}
