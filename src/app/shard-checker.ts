/**
 * Checks the files of shards (src/store/level-files) beside their databases: before a shard in doubt is opened, in the
 * background after an end that was not in order, and on request.
 *
 * It only reads. What it finds is marked for /readyz and logged; whether a shard is served with it, its caller decides.
 */
import { relative } from 'node:path'
import type { Clock } from '../clock.ts'
import { damagesNamedMax, requestedCheckBytesPerS } from '../limits.ts'
import { shardPath } from '../shard/data-directory.ts'
import { checkShardFiles } from '../store/level/files/check-shard-files.ts'
import type { FileDamage } from '../store/level/shard-damaged.ts'
import type { ShardMarks } from '../shard/shard-marks.ts'
import type { Log } from '../cluster/log.ts'
import { shardRecords } from '../shard/shard-records.ts'

export interface ShardCheckerOptions {
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Log
  readonly marks: ShardMarks
  /** Blocks of tables of this shard are damaged, or its list of files is: records may be missing without a word. */
  onFatal(shard: number): void
}

export interface CheckedShard {
  /** Tables and logs that were read. */
  readonly files: number
  /** The first `damagesNamedMax`, with the paths of files in the data directory. */
  readonly damages: readonly FileDamage[]
  readonly damagesFound: number
  /** The first damage that may end the process that opens or compacts the shard. */
  readonly fatal: FileDamage | undefined
}

export interface CheckOptions {
  /** Reads no faster than this; undefined: as fast as it can. */
  readonly bytesPerS: number | undefined
  readonly signal: AbortSignal
}

export class ShardChecker {
  readonly #options: ShardCheckerOptions
  readonly #stopping = new AbortController()
  /** By shard: whoever asks meanwhile gets the same answer. */
  readonly #requested = new Map<number, Promise<CheckedShard | undefined>>()
  #lastRequested: Promise<unknown> = Promise.resolve()

  constructor(options: ShardCheckerOptions) {
    this.#options = options
  }

  /** @returns what was found; undefined where `signal` ended it before. */
  async check(
    shard: number,
    { bytesPerS, signal }: CheckOptions,
  ): Promise<CheckedShard | undefined> {
    const { clock, dataDir, log, marks } = this.#options
    const directory = shardPath(dataDir, shard)
    const damages: FileDamage[] = []
    let damagesFound = 0
    let fatal: FileDamage | undefined
    let files = 0
    const onProgress = (read: number): void => {
      files = read
    }
    const found = checkShardFiles({
      records: shardRecords,
      directory,
      clock,
      bytesPerS,
      signal,
      onProgress,
    })
    for await (const { file, offset, what, key } of found) {
      const damage = { file: relative(dataDir, file), offset, reason: what }
      damagesFound += 1
      if (damages.length < damagesNamedMax) damages.push(damage)
      const isFatal = key === undefined && file !== directory && !file.endsWith('.log')
      if (isFatal) fatal ??= damage
    }
    if (signal.aborted) return undefined
    if (fatal !== undefined) this.#options.onFatal(shard)
    await marks.setDamaged(shard, damages)
    if (damagesFound > 0) log.error({ shard, damagesFound, damages }, foundDamage)
    return { files, damages, damagesFound, fatal }
  }

  /** One after the other, however many are asked for. Undefined where the worker ends before. */
  request(shard: number): Promise<CheckedShard | undefined> {
    const underWay = this.#requested.get(shard)
    if (underWay !== undefined) return underWay
    const { signal } = this.#stopping
    const checked = this.#lastRequested.then(async () =>
      signal.aborted
        ? undefined
        : this.check(shard, { bytesPerS: requestedCheckBytesPerS, signal }),
    )
    this.#requested.set(shard, checked)
    const forget = (): void => {
      this.#requested.delete(shard)
    }
    this.#lastRequested = checked.then(forget, forget)
    return checked
  }

  /** Ends what was requested. */
  stop(): void {
    this.#stopping.abort()
  }
}

const foundDamage =
  'files of this shard are damaged; it is served as far as they can be read: stop the server and run postbote verify, then postbote repair'
