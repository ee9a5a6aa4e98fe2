/**
 * A `Store` in PostgreSQL: one shard, in tables of its own.
 *
 * Opening the store claims the shard: its epoch rises, and each later write names the epoch. So a process that lost the
 * shard writes nothing any more, whatever it believes. The claim also waits for the end of whatever the last owner still had
 * under way, so what is read afterward is final.
 *
 *   open    connect --> claim --> prepared, which also says whether the tables are right
 *   write   one statement: written, refused (nothing was written), or unknown (the connection ends)
 *   read    one statement, made again if its connection ends
 *
 * After a write that failed, close and open: the claim then decides what became of it.
 */
import assert from 'node:assert/strict'
import { type Clock, sleep } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { reopenWaitMs } from '../../shard/shard-recovery.ts'
import { ShardDamaged } from '../../store/shard-damaged.ts'
import { StoreLifeCycle } from '../../store/store-life-cycle.ts'
import {
  type RangeOptions,
  type Store,
  type StoreEntry,
  type StoreOperation,
  type StoreSnapshot,
  WriteRefused,
} from '../../store/store.ts'
import { claimShard, type PgOwner, writerName } from './claim-shard.ts'
import { PgConnection } from './pg-connection.ts'
import { isWrongSchema, isRefusal, sqlState, uniqueViolation } from './sql-state.ts'
import { type PgGroup, pgGroup, type TableKind, tableOf } from './pg-group.ts'
import type { PgReaders, PgReadPool } from './pg-readers.ts'
import { PgSnapshot } from './pg-snapshot.ts'
import {
  byteaArray,
  getManyStatement,
  groupStatement,
  type NamedStatement,
  rangeStatement,
  vacuumStatement,
} from './named-statement.ts'
import type { PgUrl } from '../../api/pg-url.ts'

export interface PgStoreOptions {
  readonly clock: Clock
  readonly database: PgUrl
  readonly shard: number
  /** Who opens the shard. */
  readonly owner: PgOwner
  /** Called when the open store can be used no more: its claim ended with its connection. */
  readonly onEnded?: ((error: Error) => void) | undefined
  /** Shared by the shards of a process. */
  readonly readers: PgReaders
}

/** The store between `open` and `close`. */
interface Opened {
  readonly writer: PgConnection
  readonly reads: PgReadPool
  readonly epoch: string
}

interface EntryRow {
  readonly key: Buffer
  readonly value?: Buffer
}

const emptyValue = Buffer.alloc(0)
/** A read that failed at once is not made again before this has passed. Chosen: a heartbeat's pause. */
const pgReadAgainMs = 250
/** The epoch of no shard: a group for it writes nothing. */
const noEpoch = '-1'

export class PgStore implements Store {
  readonly #options: PgStoreOptions
  readonly #life: StoreLifeCycle
  readonly #group: NamedStatement
  readonly #groupReplacing: NamedStatement
  readonly #getMany: NamedStatement
  readonly #snapshots = new Set<PgSnapshot>()
  #opened: Opened | undefined

  constructor(options: PgStoreOptions) {
    this.#options = options
    const { shard, database } = options
    this.#group = groupStatement(shard, false)
    this.#groupReplacing = groupStatement(shard, true)
    this.#getMany = getManyStatement(shard)
    this.#life = new StoreLifeCycle({
      name: `shard ${shard} at ${database.shown}`,
      open: () => this.#open(),
      close: async () => {
        await Promise.all(Array.from(this.#snapshots, (snapshot) => snapshot.close()))
        this.#close()
      },
    })
  }

  open(): Promise<void> {
    return this.#life.open()
  }

  close(): Promise<void> {
    return this.#life.close()
  }

  /** `sync` makes no difference: every write is durable. */
  write(operations: readonly StoreOperation[]): Promise<void> {
    return this.#call(async ({ writer, epoch }) => {
      if (operations.length === 0) return
      // Nothing is sent on it any more. Only a write that is under way when it ends is unknown.
      if (!writer.isOpen) throw new WriteRefused(new Error('the connection has ended'))
      const values = [this.#options.shard, epoch, ...parametersOf(pgGroup(operations))]
      const owned = await this.#writeGroup(writer, values).catch((error: unknown) => {
        throw isRefusal(error) ? new WriteRefused(error) : error
      })
      if (owned === 0) throw new WriteRefused(new Error('another process has claimed the shard'))
    })
  }

  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]> {
    return this.#read(async (connection) => {
      if (keys.length === 0) return []
      const of = (kind: TableKind): Buffer =>
        byteaArray(keys.filter((key) => tableOf(key) === kind))
      const rows = await connection.run<Required<EntryRow>>(this.#getMany, [
        of('u'),
        of('s'),
        of('r'),
      ])
      const values = new Map(rows.map(({ key, value }) => [key.toString('latin1'), value]))
      return keys.map((key) => values.get(key.toString('latin1')))
    })
  }

  range({
    gte,
    lt,
    limit,
    valueBytesMax,
    reverse,
    keysOnly,
  }: RangeOptions): Promise<readonly StoreEntry[]> {
    return this.#read(async (connection) => {
      const hasBytesMax = valueBytesMax !== undefined && keysOnly !== true
      const statement = rangeStatement(this.#options.shard, {
        table: onlyTableOf(gte, lt),
        isReverse: reverse === true,
        keysOnly: keysOnly === true,
        hasBytesMax,
      })
      const values = hasBytesMax ? [gte, lt, limit, valueBytesMax] : [gte, lt, limit]
      const rows = await connection.run<EntryRow>(statement, values)
      return rows.map(({ key, value = emptyValue }) => ({ key, value }))
    })
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#call(async ({ writer: { server } }) => {
      const { database, shard, owner } = this.#options
      const connection = await PgConnection.open({
        database,
        name: `postbote/${owner.node}/copy`,
        server,
      })
      const ended = (): void => void this.#snapshots.delete(snapshot)
      const snapshot: PgSnapshot = await PgSnapshot.begin(connection, shard, ended)
      this.#snapshots.add(snapshot)
      return snapshot
    })
  }

  /**
   * Has the database clear the rows that were deleted, for as long as that takes. Their bytes stay in free space of its files until
   * that is used again, and in its WAL; the owner of the database decides about those. So it is no failure if it does not.
   */
  purge(): Promise<readonly string[]> {
    return this.#call(async ({ writer: { server } }) => {
      await Promise.all(Array.from(this.#snapshots, (snapshot) => snapshot.close()))
      const { database, shard, owner } = this.#options
      const name = `postbote/${owner.node}/purge`
      const connection = await PgConnection.open({ database, name, server })
      try {
        await connection.runScript(vacuumStatement(shard)).catch(() => undefined)
      } finally {
        connection.close()
      }
      return []
    })
  }

  async #open(): Promise<void> {
    assert(this.#opened === undefined, 'a store is opened after it was closed')
    const { database, shard, owner, readers } = this.#options
    const writer = await PgConnection.open({ database, name: writerName(owner.boot, shard) })
    try {
      const epoch = await claimShard(writer, shard, owner)
      await this.#prepare(writer)
      writer.onEnded = (error) => this.#options.onEnded?.(error)
      this.#opened = { writer, epoch, reads: readers.enter(writer) }
      // Its end may have come with the response to the claim. Nobody was told of it, and nobody would open the store again.
      if (!writer.isOpen) throw new Error('the connection ended with the claim')
    } catch (error) {
      this.#close()
      writer.close()
      throw error
    }
  }

  /** @throws ShardDamaged if the tables of the shard are not as they were made */
  async #prepare(writer: PgConnection): Promise<void> {
    const { database, shard } = this.#options
    try {
      await writer.run(this.#group, [shard, noEpoch, ...parametersOf(pgGroup([]))])
    } catch (error) {
      if (!isWrongSchema(error)) throw error
      const file = `${database.shown}, tables of shard ${shard}`
      throw new ShardDamaged({ file, reason: messageOf(error) }, { cause: error })
    }
  }

  #close(): void {
    this.#opened?.writer.close()
    if (this.#opened !== undefined) this.#opened.reads.leave(this.#opened.writer)
    this.#opened = undefined
  }

  /** Returns 0 if another process has claimed the shard. */
  async #writeGroup(writer: PgConnection, values: readonly unknown[]): Promise<number | undefined> {
    const run = async (statement: NamedStatement): Promise<number | undefined> => {
      const [row] = await writer.run<{ readonly owned: number }>(statement, values)
      return row?.owned
    }
    try {
      return await run(this.#group)
    } catch (error) {
      if (sqlState(error) !== uniqueViolation) throw error
      return await run(this.#groupReplacing)
    }
  }

  /** A read has no effect: one whose connection breaks or is silent is made again on another one, while its caller waits. */
  async #read<Result>(read: (connection: PgConnection) => Promise<Result>): Promise<Result> {
    const { clock } = this.#options
    const opened = this.#opened
    const once = (): Promise<Result> =>
      this.#call(async ({ reads }) => read(await reads.connection()))
    let triedMs = clock.monotonicMs()
    const endMs = triedMs + reopenWaitMs
    for (let reading = once(); ; ) {
      try {
        return await reading
      } catch (error) {
        if (isRefusal(error) || opened === undefined) throw error
        await sleep(clock, triedMs + pgReadAgainMs - clock.monotonicMs())
        triedMs = clock.monotonicMs()
        // Without its writer the store is about to be opened again, which waits for the end of its reads.
        const isUsable = this.#opened === opened && opened.writer.isOpen
        if (!isUsable || triedMs >= endMs) throw error
        reading = within(clock, once(), endMs - triedMs, error)
      }
    }
  }

  async #call<Result>(work: (opened: Opened) => Promise<Result>): Promise<Result> {
    const refusal = this.#life.enter()
    if (refusal !== undefined) throw refusal
    try {
      if (this.#opened === undefined) throw new Error('expected an open store')
      return await work(this.#opened)
    } finally {
      this.#life.leave()
    }
  }
}

/** Rejects with `failure` if `work` takes longer. */
function within<Result>(
  clock: Clock,
  work: Promise<Result>,
  timeMs: number,
  failure: unknown,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeMs, () => reject(failure))
    void work.then(resolve, reject).finally(() => timer.cancel())
  })
}

/** Returns the parameters from `$3` on. */
function parametersOf({ puts, updateRuns, dels }: PgGroup): readonly Buffer[] {
  const { u, s, r } = puts
  const written = [u.keys, u.values, s.keys, s.values, r.keys, r.values]
  return [...written, updateRuns.from, updateRuns.to, dels.s, dels.r].map(byteaArray)
}

/** Returns the only table that can hold keys of the range, or undefined if there may be several. */
function onlyTableOf(gte: Buffer, lt: Buffer): TableKind | undefined {
  const [first] = gte
  const [last] = lt
  if (first === undefined || last === undefined) return undefined
  const isOneLetter = last === first || (last === first + 1 && lt.length === 1)
  return isOneLetter ? tableOf(gte) : undefined
}
