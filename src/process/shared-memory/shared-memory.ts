/**
 * The file that all processes of a server map: which worker owns which shard, what each worker does and has counted, and
 * which client addresses were refused. It holds nothing that must survive: the primary makes it anew at every start, reserved
 * to its last byte (native-bindings/shared_region.c says why).
 *
 *     +---------------+  0
 *     | header        |  16 words: magic, layout version, workers, shards, 0 ...
 *     +---------------+  64
 *     | databases     |  of 2 words each, one for each database: 16 ends of leases, 16 lives, 16 offsets of clocks,
 *     |               |  and 16 differences of this node's clock
 *     +---------------+  576
 *     | shard table   |  768 words: 256 owners, 256 serving, 256 hangs   shared-shard-table.ts
 *     +---------------+  3,648
 *     | worker table  |  256 records of 6 words                       shared-worker-table.ts
 *     +---------------+  9,792
 *     | metric slots  |  workers x 4 slots of 768 words               metric-slot.ts
 *     +---------------+  9,792 + workers x 12,288
 *     | client table  |  131,072 addresses of 40 words, 21 MB         client-table.ts
 *     +---------------+
 *     | key limits    |  1,000 keys of 6 words                        shared-key-limits.ts
 *     +---------------+
 *     | sessions      |  1,001 keys of 34 words                       process/ended-sessions.ts
 *     +---------------+
 *     | history       |  1,440 minutes of 50 words                    server-history.ts
 *     +---------------+
 *
 * Words are 32 bits in the byte order of the machine. Every access is an Atomics call, and no process waits on a word. A
 * change of this layout needs another layout version; a metric or a histogram appended to its table does not.
 *
 * A worker has four slots, which its successive processes use in turn. At a reload the old process serves its connections
 * beside the new one, for 90 s and longer, and clearing the slot of one process must not touch the gauges of another.
 * Counters are never cleared: a successor continues from the values in its slot, so totals never decrease. (Rejected:
 * adding them to a slot of retired workers. A reader in between sees a loss or a double count, and both look like a
 * restart to Prometheus.)
 */
import { rmSync } from 'node:fs'
import { mapRegion } from '../../../native-bindings/shared-region.ts'
import { EndedSessions, endedSessionNumbers } from '../ended-sessions.ts'
import { slotsPerWorker } from '../limits.ts'
import { databasesMax, shardsMax, workersMax } from '../../kit/limits.ts'
import { type AllHistograms, forEachHistogram, type HistogramValues } from '../../kit/histograms.ts'
import { MetricSlot, metricSlotWords } from './metric-slot.ts'
import { forEachMetric, type MetricName } from '../../kit/metrics.ts'
import type { ShardOwner, ShardTable, WorkerRecord } from '../shard-table.ts'
import { ClientTable, clientTableBytes } from '../../admission/client-table.ts'
import { ServerHistory, serverHistoryBytes } from '../server-history.ts'
import { keyLimitNumbers } from '../../admission/shared-key-limits.ts'
import { SharedShardTable, shardTableWords } from './shared-shard-table.ts'
import { SharedWorkerTable, workerTableWords } from './shared-worker-table.ts'

export interface SharedMemorySize {
  readonly workers: number
  readonly shards: number
}

export type MetricValues = Record<MetricName, number>

export class SharedMemory implements ShardTable {
  readonly workers: number
  readonly shards: number
  readonly shardTable: SharedShardTable
  readonly workerTable: SharedWorkerTable
  readonly clients: ClientTable
  /** For SharedKeyLimits. */
  readonly keyLimits: BigUint64Array
  readonly endedSessions: EndedSessions
  readonly history: ServerHistory
  readonly #leases: BigUint64Array
  readonly #lives: BigUint64Array
  readonly #clockOffsets: BigInt64Array
  readonly #clockSkews: BigInt64Array
  /** The slots of worker 0 come first. */
  readonly #slots: readonly MetricSlot[]

  /** Maps the tables over a region that `create` or `attach` has checked. */
  constructor(region: ArrayBuffer, { workers, shards }: SharedMemorySize) {
    this.workers = workers
    this.shards = shards
    this.#leases = new BigUint64Array(region, headerBytes, databasesMax)
    this.#lives = new BigUint64Array(region, headerBytes + databasesMax * 8, databasesMax)
    this.#clockOffsets = new BigInt64Array(region, headerBytes + databasesMax * 16, databasesMax)
    this.#clockSkews = new BigInt64Array(region, headerBytes + databasesMax * 24, databasesMax)
    this.shardTable = new SharedShardTable(
      new Int32Array(region, shardTableOffset, shardTableWords),
      shards,
    )
    this.workerTable = new SharedWorkerTable(
      new Int32Array(region, workerTableOffset, workerTableWords),
    )
    this.#slots = Array.from(
      { length: workers * slotsPerWorker },
      (_slot, index) =>
        new MetricSlot(new Int32Array(region, slotsOffset + index * slotBytes, metricSlotWords)),
    )
    const clientsOffset = slotsOffset + workers * slotsPerWorker * slotBytes
    this.clients = new ClientTable(region, clientsOffset)
    const keysOffset = clientsOffset + clientTableBytes
    this.keyLimits = new BigUint64Array(region, keysOffset, keyLimitNumbers)
    const sessionsOffset = keysOffset + keyLimitNumbers * 8
    this.endedSessions = new EndedSessions(
      new BigUint64Array(region, sessionsOffset, endedSessionNumbers),
    )
    this.history = new ServerHistory(region, sessionsOffset + endedSessionNumbers * 8)
  }

  /** For the primary: replaces the file of an earlier server; a process that still maps the old file is not disturbed. */
  static create({
    path,
    workers,
    shards,
  }: SharedMemorySize & { readonly path: string }): SharedMemory {
    if (!isCount(workers, workersMax) || !isCount(shards, shardsMax)) {
      throw new RangeError(
        `expected 1..${workersMax} workers and 1..${shardsMax} shards; got ${workers} and ${shards}`,
      )
    }
    rmSync(path, { force: true })
    const region = mapRegion(path, regionBytes(workers), true)
    const header = new Int32Array(region, 0, headerWords)
    Atomics.store(header, word.layoutVersion, layoutVersion)
    Atomics.store(header, word.workers, workers)
    Atomics.store(header, word.shards, shards)
    // Store this last, so that no process attaches to an incomplete header.
    Atomics.store(header, word.magic, magic)
    return new SharedMemory(region, { workers, shards })
  }

  /** For a worker, and for each of its threads: an ArrayBuffer posted to a thread would be a copy. */
  static attach(path: string): SharedMemory {
    const region = mapRegion(path, 0, false)
    if (region.byteLength < headerBytes) throw foreign(path)
    const header = new Int32Array(region, 0, headerWords)
    if (Atomics.load(header, word.magic) !== magic) throw foreign(path)
    const version = Atomics.load(header, word.layoutVersion)
    if (version !== layoutVersion) {
      throw new Error(
        `${path} has layout version ${version}, this program has ${layoutVersion}: restart the whole server`,
      )
    }
    const workers = Atomics.load(header, word.workers)
    const shards = Atomics.load(header, word.shards)
    if (
      !isCount(workers, workersMax) ||
      !isCount(shards, shardsMax) ||
      region.byteLength !== regionBytes(workers)
    ) {
      throw foreign(path)
    }
    return new SharedMemory(region, { workers, shards })
  }

  /**
   * For the primary: until when this server may serve the shards that it has claimed in a database in this life, in ms of
   * the machine's clock (clock.ts).
   */
  setLease(database: number, boot: string, validUntilMs: number): void {
    const life = lifeOf(boot)
    if (Atomics.load(this.#lives, database) !== life) {
      // A process that reads the time and then the life never takes the lease of one life for that of another.
      Atomics.store(this.#leases, database, 0n)
      Atomics.store(this.#lives, database, life)
    }
    Atomics.store(this.#leases, database, BigInt(Math.floor(validUntilMs)))
  }

  /** Returns the end of the lease of a database; 0 before its first one. */
  leaseMs(database: number): number {
    return Number(Atomics.load(this.#leases, database))
  }

  /** Returns the life that has the lease of a database, as `lifeOf` gives it. Read the time before. */
  leaseLife(database: number): bigint {
    return Atomics.load(this.#lives, database)
  }

  /** For the primary: how the clock of a database runs (database-clock.ts), in ms. */
  setClock(
    database: number,
    { offsetMs, skewMs }: { readonly offsetMs: number; readonly skewMs: number },
  ): void {
    Atomics.store(this.#clockOffsets, database, BigInt(Math.round(offsetMs)))
    Atomics.store(this.#clockSkews, database, BigInt(skewMs))
  }

  /** Returns what the time of the machine lacks to that of a database's shards, in ms; 0 before the first heartbeat. */
  clockOffsetMs(database: number): number {
    return Number(Atomics.load(this.#clockOffsets, database))
  }

  /** Returns how far this node's wall clock is ahead of a database's, in ms. */
  clockSkewMs(database: number): number {
    return Number(Atomics.load(this.#clockSkews, database))
  }

  /** Returns the slot in which the process of this worker and generation counts. Call this once and keep the result. */
  slot(worker: number, generation = 0): MetricSlot {
    const slot = this.#slots[worker * slotsPerWorker + (generation % slotsPerWorker)]
    if (slot === undefined || !isIndex(worker) || !isIndex(generation)) {
      throw new RangeError(
        `expected a worker below ${this.workers} and a generation; got ${worker} and ${generation}`,
      )
    }
    return slot
  }

  assign(shard: number, owner: ShardOwner | undefined): void {
    this.shardTable.assign(shard, owner)
  }

  markServing(shard: number, generation: number): void {
    this.shardTable.markServing(shard, generation)
  }

  isServed(shard: number): boolean {
    return this.shardTable.isServed(shard)
  }

  countHang(worker: number): void {
    this.shardTable.countHang(worker)
  }

  noteWorker(worker: number, record: WorkerRecord): void {
    this.workerTable.note(worker, record)
  }

  /** Clears the gauges of the process and keeps its counters. Shards that a successor already has stay assigned. */
  release({ worker, generation }: ShardOwner): void {
    this.slot(worker, generation).clearGauges()
    for (let shard = 0; shard < this.shards; shard++) {
      const owner = this.shardTable.owner(shard)
      if (owner?.worker === worker && owner.generation === generation) {
        this.shardTable.assign(shard, undefined)
      }
    }
  }

  /** Returns one metric over all workers, without building a record of all metrics. */
  total(name: MetricName): number {
    return totalOf(this.#slots, { name, isWorst: isWorst[name] })
  }

  totals(): MetricValues {
    return sumOf(this.#slots)
  }

  /** Returns all histograms over all workers. */
  histograms(): AllHistograms {
    return forEachHistogram(({ name }) =>
      this.#slots.map((slot) => slot.histogram(name)).reduce(addHistograms),
    )
  }

  /** Returns one metric of a worker, over all processes that have had its place. */
  ofWorker(worker: number, name: MetricName): number {
    const slots = this.#slots.slice(worker * slotsPerWorker, (worker + 1) * slotsPerWorker)
    return totalOf(slots, { name, isWorst: isWorst[name] })
  }
}

/** Returns the number of a life of this node, whose `boot` is 16 hexadecimal digits. */
export function lifeOf(boot: string): bigint {
  return BigInt(`0x${boot}`)
}

const magic = 0x50_42_53_4d // "PBSM"
const layoutVersion = 10
const word = { magic: 0, layoutVersion: 1, workers: 2, shards: 3 } as const
const headerWords = 16
const headerBytes = headerWords * 4
/** After four numbers of 8 bytes for each database. */
const shardTableOffset = headerBytes + databasesMax * 32
const slotBytes = metricSlotWords * 4
const workerTableOffset = shardTableOffset + shardTableWords * 4
const slotsOffset = workerTableOffset + workerTableWords * 4

function regionBytes(workers: number): number {
  const keyNumbers = keyLimitNumbers + endedSessionNumbers
  const tablesBytes = clientTableBytes + keyNumbers * 8 + serverHistoryBytes
  return slotsOffset + workers * slotsPerWorker * slotBytes + tablesBytes
}

function isCount(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= max
}

function isIndex(value: number): boolean {
  return Number.isInteger(value) && value >= 0
}

function foreign(path: string): Error {
  return new Error(
    `${path} is not the shared memory of a Postbote server, or its primary has not finished it`,
  )
}

function addHistograms(a: HistogramValues, b: HistogramValues): HistogramValues {
  const counts = a.counts.map((count, bucket) => count + (b.counts[bucket] ?? 0))
  return { counts, sumMs: a.sumMs + b.sumMs }
}

function sumOf(slots: readonly MetricSlot[]): MetricValues {
  return forEachMetric(({ name }) => totalOf(slots, { name, isWorst: isWorst[name] }))
}

const isWorst = forEachMetric((metric) => metric.isWorst)

function totalOf(
  slots: readonly MetricSlot[],
  metric: { readonly name: MetricName; readonly isWorst: boolean },
): number {
  let total = 0
  for (const slot of slots) {
    const value = slot.get(metric.name)
    total = metric.isWorst ? Math.max(total, value) : total + value
  }
  return total
}
