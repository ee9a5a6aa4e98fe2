/**
 * Checks the files of shards without opening their databases: before a shard in doubt is opened, in the
 * background after a crash, and on request.
 *
 * A check only reads. Its findings are marked for /readyz and logged; the caller decides whether a damaged shard is
 * served.
 */
import { relative } from 'node:path'
import type { Clock } from '../clock.ts'
import { Mutex } from '../kit/mutex.ts'
import { damagesNamedMax, mib } from '../limits.ts'
import { shardPath } from '../shard/data-directory.ts'
import type { FileDamage } from '../store/shard-damaged.ts'
import type { ShardDamage, StoreFiles } from '../store/store-files.ts'
import type { ShardMarks } from '../shard/shard-marks.ts'
import type { Log } from '../surroundings.ts'
import { shardRecords } from '../shard/shard-records.ts'

export interface ShardCheckerOptions {
  readonly dataDir: string
  /** Undefined if no files of this machine hold the shards: every check then finds nothing. */
  readonly storeFiles: StoreFiles | undefined
  readonly clock: Clock
  readonly log: Log
  readonly marks: ShardMarks
  /** Tables of this shard have damaged blocks, or its list of files is damaged: records may be missing without an error. */
  onFatal(shard: number): void
}

export interface CheckedShard {
  /** The number of tables and logs that were read. */
  readonly files: number
  /** The first `damagesNamedMax`, with the paths of files relative to the data directory. */
  readonly damages: readonly FileDamage[]
  readonly damagesFound: number
  /** The first damage that may end the process that opens or compacts the shard. */
  readonly fatal: FileDamage | undefined
}

export interface CheckOptions {
  /** How fast to read; undefined for as fast as possible. */
  readonly bytesPerS: number | undefined
  readonly signal: AbortSignal
}

/** A check on request reads at most this much per second, which takes half of a worker's CPU at most. */
const requestedCheckBytesPerS = 24 * mib

export class ShardChecker {
  readonly #options: ShardCheckerOptions
  readonly #stopping = new AbortController()
  /** By shard: a second request for the same shard gets the result of the running check. */
  readonly #requested = new Map<number, Promise<CheckedShard | undefined>>()
  readonly #requests = new Mutex()

  constructor(options: ShardCheckerOptions) {
    this.#options = options
  }

  /** @returns the findings; undefined if `signal` aborted the check */
  async check(
    shard: number,
    { bytesPerS, signal }: CheckOptions,
  ): Promise<CheckedShard | undefined> {
    const { clock, dataDir, log, marks, storeFiles } = this.#options
    const directory = shardPath(dataDir, shard)
    const damages: FileDamage[] = []
    let damagesFound = 0
    let fatal: FileDamage | undefined
    let files = 0
    const onProgress = (read: number): void => {
      files = read
    }
    const options = { records: shardRecords, directory, clock, bytesPerS, signal, onProgress }
    for await (const part of storeFiles?.read(options) ?? []) {
      if (part.kind === 'entries') continue
      const { file, offset, what } = part
      const damage = { file: relative(dataDir, file), offset, reason: what }
      damagesFound += 1
      if (damages.length < damagesNamedMax) damages.push(damage)
      if (isFatal(part, directory)) fatal ??= damage
    }
    if (signal.aborted) return undefined
    if (fatal !== undefined) this.#options.onFatal(shard)
    await marks.setDamaged(shard, damages)
    if (damagesFound > 0) log.error({ shard, damagesFound, damages }, foundDamage)
    return { files, damages, damagesFound, fatal }
  }

  /** Checks a shard on request; requested checks run one after the other. Undefined if the worker ends before. */
  request(shard: number): Promise<CheckedShard | undefined> {
    const underWay = this.#requested.get(shard)
    if (underWay !== undefined) return underWay
    const { signal } = this.#stopping
    const checked = this.#requests.run(async () =>
      signal.aborted
        ? undefined
        : this.check(shard, { bytesPerS: requestedCheckBytesPerS, signal }),
    )
    this.#requested.set(shard, checked)
    const forget = (): void => {
      this.#requested.delete(shard)
    }
    checked.then(forget, forget)
    return checked
  }

  /** Ends the requested checks. */
  close(): void {
    this.#stopping.abort()
  }
}

/** Damage of one record, of a log or of the whole directory ends no process. */
function isFatal({ file, key, isLog }: ShardDamage, directory: string): boolean {
  return key === undefined && file !== directory && !isLog
}

const foundDamage =
  'files of this shard are damaged; the shard is served as far as they can be read: run postbote verify, then stop the server and run postbote repair'
