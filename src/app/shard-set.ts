/**
 * The shards of one worker: this opens them, sets them aside if their files are damaged, and closes them. A damaged shard
 * costs its own bots only; every other shard of the worker is served.
 *
 *   open        all shards without doubt, concurrently; the worker serves when they are open
 *   late        then those in doubt (opening-verdict.ts), one by one, so that a death shows which one caused it: their
 *               files are checked, and they are opened if no damage is found
 *   background  then the files of those that their last process did not close, slowly
 *
 * A shard is set aside if damage prevents its opening, if a check finds damage after a death, or if two processes in a
 * row have died over it. It stays set aside until the server is restarted or reloaded. If the disk has no room to open it,
 * it is set aside only until there is. Missing permission or a failed write is no damage and affects every shard: then the
 * worker does not start.
 */
import { sleep } from '../clock.ts'
import { backgroundCheckBytesPerS, lateOpeningRetryMs, roomlessOpeningRetryMs } from './limits.ts'
import { shardPath } from '../shard/data-directory.ts'
import type { Shard } from '../shard/shard.ts'
import { isOutOfRoom } from '../store/out-of-room.ts'
import type { FileDamage } from '../store/shard-damaged.ts'
import type { StoreFiles } from '../store/store-files.ts'
import type { ShardLife, ShardMarks, ShardPhase } from '../shard/shard-marks.ts'
import {
  type OpeningVerdict,
  openingVerdicts,
  type ShardPast,
  type WorkerPast,
} from './opening-verdict.ts'
import type { ShardChecker } from './shard-checker.ts'
import { openShard, type ShardOpenerOptions } from './shard-opener.ts'

export interface ShardSetOptions
  extends Omit<ShardOpenerOptions, 'onReset' | 'onReadFailed' | 'onUnreadable'> {
  /** The numbers of the shards. */
  readonly shards: readonly number[]
  readonly past: WorkerPast
  readonly marks: ShardMarks
  /** The files that hold the shards. */
  readonly files: StoreFiles
  readonly checker: ShardChecker
  /** A shard is served from now on, or was read anew. */
  onServed(shard: Shard): void
}

/** A shard that is not open yet. */
interface Candidate {
  readonly index: number
  readonly past: ShardPast
  readonly verdict: OpeningVerdict
}

export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #open = new Map<number, Shard>()
  readonly #lives = new Map<number, ShardLife>()
  readonly #aside = new Set<number>()
  /** Shards whose files were checked because a read failed. */
  readonly #suspected = new Set<number>()
  readonly #stopping = new AbortController()
  #late: Promise<void> = Promise.resolve()

  constructor(options: ShardSetOptions) {
    this.#options = options
  }

  /** Returns the numbers of all shards. Rejects if one cannot be opened for a reason other than damage. */
  async open(): Promise<readonly number[]> {
    const candidates = await this.#candidates()
    for (const each of candidates) await this.#prepare(each)
    const trusted = candidates.filter(({ verdict }) => verdict.action === 'open')
    const roomless = new Set<number>()
    await Promise.all(
      trusted.map(async ({ index }) => {
        if (!(await this.#openIfRoom(index))) roomless.add(index)
      }),
    )
    const inDoubt = candidates.filter(({ verdict }) => verdict.action === 'check')
    this.#late = this.#goOn(inDoubt, roomless)
    return this.#options.shards
  }

  /** Resolves when all shards are closed. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#late
    await Promise.all(
      Array.from(this.#open, async ([index, shard]) => {
        await shard.close()
        await this.#setLife(index, 'closed', { deaths: 0 })
      }),
    )
    this.#open.clear()
  }

  async #candidates(): Promise<readonly Candidate[]> {
    const { shards, marks, dataDir, files, past: worker } = this.#options
    const pasts = await Promise.all(
      shards.map(async (index) => ({
        life: await marks.life(index),
        isBroken: isDamage(await marks.broken(index)),
        wasCompacting: await files.wasCompacting(shardPath(dataDir, index)),
      })),
    )
    const verdicts = openingVerdicts(pasts, worker)
    return shards.flatMap((index, at) => {
      const past = pasts[at]
      const verdict = verdicts[at]
      return past === undefined || verdict === undefined ? [] : [{ index, past, verdict }]
    })
  }

  /** Marks what will be done with the shard, before any shard is opened: opening one may end this process. */
  async #prepare({ index, past, verdict }: Candidate): Promise<void> {
    const { marks, bots } = this.#options
    const { life, isBroken } = past
    // Earlier damage may have been repaired.
    const isUnchecked =
      life.isUnchecked || life.phase !== 'closed' || (await marks.hasDamaged(index))
    this.#lives.set(index, { phase: life.phase, isUnchecked, deaths: verdict.deaths })
    const isInDoubt = verdict.action === 'check'
    await marks.setChecking(index, isInDoubt)
    if (isInDoubt) {
      await this.#setLife(index, 'waiting')
      if (isBroken) bots.setAside(index)
    }
    if (verdict.action !== 'leave') return
    const known = isBroken ? await marks.broken(index) : undefined
    await this.#setAside(index, known ?? this.#unknownDamage(index, verdict))
  }

  #unknownDamage(index: number, { deaths }: OpeningVerdict): FileDamage {
    const { dataDir, past } = this.#options
    const how = past.crash === undefined ? '' : `, the last time by ${past.crash.signal}`
    const reason = `${deaths} processes in a row died while they opened or compacted this shard${how}; a check of its files found nothing`
    return { file: shardPath(dataDir, index), reason }
  }

  async #goOn(inDoubt: readonly Candidate[], roomless: Set<number>): Promise<void> {
    for (const { index } of inDoubt) await this.#openLate(index)
    await this.#awaitRoom(roomless)
    for (const index of this.#open.keys()) await this.#checkOpen(index)
  }

  /** Checks the files of a shard as fast as possible, and opens it if they are sound. */
  async #openLate(index: number): Promise<void> {
    const { checker, clock, log, marks } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        log.info({ shard: index }, 'the files of a shard are being checked before it is opened')
        const checked = await checker.check(index, { bytesPerS: undefined, signal })
        if (checked === undefined) return
        if (checked.fatal !== undefined) await this.#setAside(index, checked.fatal)
        else await this.#openOne(index, { isUnchecked: false })
        await marks.setChecking(index, false)
        return
      } catch (error) {
        log.error({ shard: index, error: String(error) }, isTriedAgain)
      }
      await sleep(clock, lateOpeningRetryMs, signal)
    }
  }

  /** Opens shards when the disk has room for them, one by one, so that none takes it from another. */
  async #awaitRoom(roomless: Set<number>): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    while (roomless.size > 0) {
      await sleep(clock, roomlessOpeningRetryMs, signal)
      for (const index of roomless) {
        if (signal.aborted) return
        try {
          if (!(await this.#openIfRoom(index))) continue
          roomless.delete(index)
          log.info({ shard: index }, 'the disk has room for a shard again, and it is served')
        } catch (error) {
          log.error({ shard: index, error: String(error) }, isTriedAgain)
        }
      }
    }
  }

  /** Returns whether the disk had room. Otherwise the shard is set aside. */
  async #openIfRoom(index: number): Promise<boolean> {
    try {
      await this.#openOne(index)
      return true
    } catch (error) {
      if (!isOutOfRoom(error)) throw error
      await this.#setAside(index, noRoomFor(shardPath(this.#options.dataDir, index)), hasNoRoom)
      return false
    }
  }

  async #openOne(index: number, change: Partial<ShardLife> = {}): Promise<void> {
    const { counters, files, marks } = this.#options
    await this.#setLife(index, 'opening', change)
    let shard: Shard
    try {
      shard = await openShard(
        {
          ...this.#options,
          onReset: (opened) => this.#readAnew(opened),
          onReadFailed: (failed, error) => this.#readFailed(failed, error),
          onUnreadable: (opened, error) => this.#unreadable(opened, error),
        },
        index,
      )
    } catch (error) {
      await this.#setLife(index, 'closed')
      const damage = this.#damageOf(error, index)
      if (damage === undefined || (await files.isFailedWrite(error))) throw error
      await this.#setAside(index, damage)
      return
    }
    this.#open.set(index, shard)
    await this.#setLife(index, 'open')
    if (this.#aside.delete(index)) counters.add('shards_broken', -1)
    await marks.setBroken(index, undefined)
    this.#options.onServed(shard)
  }

  /** Checks the files of a shard that its last process did not close. */
  async #checkOpen(index: number): Promise<void> {
    const { checker, log } = this.#options
    const { signal } = this.#stopping
    if (signal.aborted || this.#lives.get(index)?.isUnchecked !== true) return
    try {
      const checked = await checker.check(index, { bytesPerS: backgroundCheckBytesPerS, signal })
      if (checked === undefined) return
      await this.#setLife(index, 'open', { isUnchecked: false })
    } catch (error) {
      log.error({ shard: index, error: String(error) }, 'the files of a shard could not be checked')
    }
  }

  async #setAside(index: number, damage: FileDamage, message = isSetAside): Promise<void> {
    const { counters, log, marks, bots } = this.#options
    bots.setAside(index)
    await this.#setLife(index, 'closed')
    await marks.setBroken(index, damage)
    if (this.#aside.has(index)) return
    this.#aside.add(index)
    counters.add('shards_broken', 1)
    const { file, offset, reason } = damage
    this.#reportBroken(index, damage)
    log.error({ shard: index, file, offset, reason }, message)
  }

  #readAnew(shard: Shard): void {
    const { counters, marks } = this.#options
    if (this.#aside.delete(shard.index)) {
      counters.add('shards_broken', -1)
      void marks.setBroken(shard.index, undefined)
    }
    this.#options.onServed(shard)
  }

  /**
   * A failed read may report neither file nor offset, so a check of the files finds them. It runs once, because every further read
   * may fail, too.
   */
  #readFailed(index: number, error: unknown): void {
    const { checker, log } = this.#options
    if (this.#suspected.has(index) || this.#stopping.signal.aborted) return
    const damage = this.#damageOf(error, index)
    if (damage === undefined) return
    this.#suspected.add(index)
    log.error({ shard: index, reason: damage.reason }, isUnreadable)
    checker.request(index).catch((failure: unknown) => {
      log.error(
        { shard: index, error: String(failure) },
        'the files of a shard could not be checked',
      )
    })
  }

  /** After a failed write the shard cannot be reopened. If damage is the reason, it is listed with the shards set aside. */
  #unreadable({ index }: Shard, error: unknown): void {
    const { counters, marks } = this.#options
    const damage = this.#damageOf(error, index)
    if (damage === undefined || this.#aside.has(index)) return
    this.#aside.add(index)
    counters.add('shards_broken', 1)
    this.#reportBroken(index, damage)
    void marks.setBroken(index, damage)
  }

  #reportBroken(shard: number, { reason }: FileDamage): void {
    const { clock, report } = this.#options
    report({ type: 'shard.broken', timeMs: clock.nowMs(), shard, reason })
  }

  #damageOf(error: unknown, index: number): FileDamage | undefined {
    const { dataDir, files } = this.#options
    return files.damageOf(error, shardPath(dataDir, index))
  }

  async #setLife(index: number, phase: ShardPhase, change: Partial<ShardLife> = {}): Promise<void> {
    const before = this.#lives.get(index) ?? { isUnchecked: false, deaths: 0 }
    const life = { ...before, ...change, phase }
    this.#lives.set(index, life)
    await this.#options.marks.setLife(index, life)
  }
}

const noRoom = 'the disk has no room to open it; it is tried again until there is room'

function noRoomFor(file: string): FileDamage {
  return { file, reason: noRoom }
}

/** A shard without room is opened by the next process like any other. */
function isDamage(mark: FileDamage | undefined): boolean {
  return mark !== undefined && mark.reason !== noRoom
}

const isTriedAgain = 'a shard could not be opened and is tried again'
const hasNoRoom =
  'a shard is set aside because the disk has no room to open it, and all others are served: make room, and it is served without a restart'
const isUnreadable = 'a read of this shard failed; its files are being checked'
const isSetAside =
  'a shard is set aside because its files are damaged, and all others are served: stop the server, run postbote verify and postbote repair, and start the server again'
