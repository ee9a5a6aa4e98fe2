/**
 * Checks the files of shards that are open, without their databases:
 *
 *   verify   compares the checksums of blocks, in a thread: after the start, and then whatever is new or was not verified
 *            within a day
 *   check    also decodes every record: after a crash, and on request
 *
 * Both only read. What they find is named in the log, on /readyz and in an event. A shard with a damaged table is closed
 * (`onTables`), before LevelDB rewrites that; other damage leaves it open.
 */
import { relative } from 'node:path'
import type { Clock } from '../kit/clock.ts'
import { Mutex } from '../kit/mutex.ts'
import { damagesNamedMax, mib } from '../kit/limits.ts'
import { shardPath } from '../shard/data-directory.ts'
import { damageText, type FileDamage } from '../store/shard-damaged.ts'
import type { FilesDamage } from '../leveldb-files/files-part.ts'
import type { StoreFiles, VerifyThread } from '../store/store-files.ts'
import type { ShardMarks } from '../shard/recovery/shard-marks.ts'
import type { ReportEvent } from '../kit/operator-event.ts'
import type { Counters, Log } from '../kit/surroundings.ts'
import { shardRecords } from '../shard/shard-records.ts'

export interface ShardCheckerOptions {
  readonly dataDir: string
  /** Undefined if no files of this machine hold the shards: every check then finds nothing. */
  readonly storeFiles: StoreFiles | undefined
  readonly clock: Clock
  readonly log: Log
  readonly marks: ShardMarks
  readonly verifyThread: VerifyThread
  readonly counters: Pick<Counters, 'add'>
  readonly report: ReportEvent
  /** Tables of this shard, or its list of files, are damaged: records may be missing without an error. Undefined: no more. */
  onTables(shard: number, damage: FileDamage | undefined): void
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

/**
 * A verification reads at most this much per second, so it takes a twentieth of a core and of a slow disk: some 5 minutes for 10
 * GB, in the thread.
 */
const verifiedBytesPerS = 32 * mib
/** A check on request reads at most this much per second, which takes half of a worker's CPU at most. */
const requestedCheckBytesPerS = 24 * mib

export class ShardChecker {
  readonly #options: ShardCheckerOptions
  readonly #stopping = new AbortController()
  /** By shard: a second request for the same shard gets the result of the running check. */
  readonly #requested = new Map<number, Promise<CheckedShard | undefined>>()
  readonly #requests = new Mutex()
  /** What was announced of each shard since it was found sound, so that each damage is announced once. */
  readonly #announced = new Map<number, Map<string, FileDamage>>()

  constructor(options: ShardCheckerOptions) {
    this.#options = options
  }

  /** Verifies files also before their shard is opened. */
  get thread(): VerifyThread {
    return this.#options.verifyThread
  }

  /** @returns the findings; undefined if `signal` aborted the check */
  async check(
    shard: number,
    { bytesPerS, signal }: CheckOptions,
  ): Promise<CheckedShard | undefined> {
    const { clock, dataDir, storeFiles } = this.#options
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
    // A compaction may have hidden what an earlier verification has found: only a check of all records takes it back.
    if (damagesFound === 0) this.#forgetFiles(shard)
    await this.announce(shard, damages, damagesFound)
    if (fatal !== undefined || damagesFound === 0) this.#options.onTables(shard, fatal)
    return { files, damages, damagesFound, fatal }
  }

  /** Verifies the files of an open shard: what is new since the last time, and what was not verified within a day. */
  async verify(shard: number, signal: AbortSignal): Promise<void> {
    const { clock, counters, dataDir, storeFiles, verifyThread } = this.#options
    let unverified = 0
    const onProgress = (bytesLeft: number): void => {
      counters.add('file_bytes_unverified', bytesLeft - unverified)
      unverified = bytesLeft
    }
    try {
      const verified = await storeFiles?.verify({
        directory: shardPath(dataDir, shard),
        clock,
        thread: verifyThread,
        bytesPerS: verifiedBytesPerS,
        signal,
        onProgress,
      })
      if (verified === undefined) return
      counters.add('file_bytes_verified', verified.bytesVerified)
      if (verified.damagesFound === 0) return
      const damages = verified.damages.map((each) => ({
        ...each,
        file: relative(dataDir, each.file),
      }))
      await this.announce(shard, damages, verified.damagesFound)
      const table = damages.find(({ file }) => !file.endsWith('.log'))
      if (table !== undefined) this.#options.onTables(shard, table)
    } finally {
      onProgress(0)
    }
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

  /**
   * Names damage that was not named before.
   *
   * @param damages - the first damages that were found, with paths relative to the data directory or absolute
   * @param damagesFound - how many were found
   */
  async announce(
    shard: number,
    damages: readonly FileDamage[],
    damagesFound = damages.length,
  ): Promise<void> {
    const { clock, counters, log, marks, report } = this.#options
    const known = this.#announced.get(shard) ?? new Map<string, FileDamage>()
    const found = damages.filter((each) => !known.has(nameOf(each)))
    for (const damage of found) known.set(nameOf(damage), damage)
    this.#announced.set(shard, known)
    await marks.setDamaged(shard, [...known.values()])
    const [first] = found
    if (first === undefined) return
    counters.add('file_damages_found', found.length)
    log.error({ shard, damagesFound, damages: found }, foundDamage)
    report({
      type: 'shard.damaged',
      timeMs: clock.nowMs(),
      shard,
      count: damagesFound,
      reason: first.offset === undefined ? first.reason : damageText(first),
    })
  }

  /** Updates that are missing in sound files stay named: no check of the files can find them. */
  #forgetFiles(shard: number): void {
    const known = this.#announced.get(shard)
    for (const [name, { offset }] of known ?? []) if (offset !== undefined) known?.delete(name)
  }

  /** Ends the requested checks. */
  close(): void {
    this.#stopping.abort()
  }
}

function nameOf({ file, offset, reason }: FileDamage): string {
  return `${file} ${offset ?? reason}`
}

/** Damage of one record, of a log or of the whole directory ends no process. */
function isFatal({ file, key, isLog }: FilesDamage, directory: string): boolean {
  return key === undefined && file !== directory && !isLog
}

const foundDamage =
  'files of this shard are damaged: run postbote verify, then stop the server and run postbote repair'
