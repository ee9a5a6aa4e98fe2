/**
 * The shards of one worker, whatever stores them: this opens them, sets them aside if they are damaged, and closes them.
 * shard-mode.ts draws the life of one. A single machine has all of its shards for ever; those of a cluster come and go
 * while the worker serves. A damaged shard costs its own bots only; every other shard of the worker is served.
 *
 *   open        all shards without doubt, concurrently; the worker serves when they are open
 *   late        then those in doubt (opening-verdict.ts), one by one, so that a death shows which one caused it: their
 *               files are checked, and they are opened if no damage is found
 *   background  then the files of those that their last process did not close, slowly
 *   leave       serves a shard until nothing takes long, answers what is in progress, and closes it: another node may open it
 *   drop        another node owns the shard already: everything of it in memory is void, and nothing of it can be written
 *
 * A shard is set aside if damage prevents its opening, if a check of its files finds damage after a death, or if two
 * processes in a row have died over it; until the server is restarted or reloaded, or another node has it. If the disk has no
 * room to open it, it is set aside only until there is. Missing permission or a failed write is no damage and affects every
 * shard of this machine: then the worker does not start.
 */
import type { ServerResponse } from 'node:http'
import { sleep } from '../clock.ts'
import type { ShardOpening } from '../cluster/shard-assignment.ts'
import { leave, type OpenResponsesView, settle } from '../cluster/worker/departure.ts'
import { Mutex } from '../kit/mutex.ts'
import { shardPath } from '../shard/data-directory.ts'
import type { Shard } from '../shard/shard.ts'
import type { ShardLife, ShardMarks } from '../shard/shard-marks.ts'
import { isOutOfRoom } from '../store/out-of-room.ts'
import { type FileDamage, ShardDamaged } from '../store/shard-damaged.ts'
import type { DatabaseClocks } from './database-clocks.ts'
import type { DatabaseLeases } from './database-leases.ts'
import { backgroundCheckBytesPerS, lateOpeningRetryMs, roomlessOpeningRetryMs } from './limits.ts'
import { openingVerdicts, type OpeningVerdict, type WorkerPast } from './opening-verdict.ts'
import type { CheckedShard, ShardChecker } from './shard-checker.ts'
import { changedShardMode, isBroken, phaseOf, type ShardMode } from './shard-mode.ts'
import { openShard, type ShardOpenerOptions } from './shard-opener.ts'

type Hooks = 'onReset' | 'onReadFailed' | 'onUnreadable'

export interface ShardSetOptions extends Omit<ShardOpenerOptions, Hooks | 'lease'> {
  /** The shards that this worker may have. */
  readonly shards: readonly number[]
  readonly past: WorkerPast
  readonly marks: Omit<ShardMarks, 'setDamaged'>
  readonly checker: Pick<ShardChecker, 'check' | 'request'>
  readonly leases: Pick<DatabaseLeases, 'ofShard'>
  readonly clocks: Pick<DatabaseClocks, 'ofShard'>
  /** What ends when a shard leaves: its pairs may be for that shard, and an export asks again. */
  readonly shardStreams: readonly ReadonlySet<{ stop(): void }>[]
  /** Whether this worker is answering the request, which is for this shard, from its own shards. */
  readonly isUnderWay: (response: ServerResponse, shard: number) => boolean
  /** The shard is served from now on, or was read anew. */
  readonly onServed: (shard: Shard) => void
  /** The shard is not served any more, from now on. */
  readonly onLeft: (shard: Shard) => void
}

/** A shard with what is to be done with it. */
type Candidate = ShardOpening & { readonly action: OpeningVerdict['action'] }

export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #modes = new Map<number, ShardMode>()
  /** Shards that the operator is told of, until they are open. */
  readonly #broken = new Set<number>()
  readonly #open = new Map<number, Shard>()
  readonly #lives = new Map<number, ShardLife>()
  /** Shards whose files were checked because a read failed. */
  readonly #suspected = new Set<number>()
  /** What is done with one shard is done in turn. */
  readonly #turns = new Map<number, Mutex>()
  readonly #stopping = new AbortController()
  #late: Promise<void> = Promise.resolve()

  constructor(options: ShardSetOptions) {
    this.#options = options
  }

  /** Whether requests for the shard are answered here: always, if no other node can have it. */
  serves(shard: number): boolean {
    const mode = this.#modeOf(shard)
    return this.#options.engine.shared === undefined || mode === 'open' || isBroken(mode)
  }

  /**
   * Returns the numbers of the shards that are served. Rejects if one that no other node can have cannot be opened for a reason
   * other than damage; others are left out, and the primary decides again.
   */
  async open(openings: readonly ShardOpening[]): Promise<readonly number[]> {
    const { engine, log, marks, shards } = this.#options
    // The last process of this worker may have left them.
    if (engine.files === undefined)
      await Promise.all(shards.map((each) => marks.setBroken(each, undefined)))
    const candidates = await this.#candidates(openings)
    const roomless = new Set<ShardOpening>()
    const opening = candidates.map(async (candidate) => {
      if (candidate.action !== 'open') return
      try {
        if (!(await this.#openIfRoom(candidate))) roomless.add(candidate)
      } catch (error) {
        if (engine.shared === undefined) throw error
        log.warn({ shard: candidate.shard, error: String(error) }, 'a shard could not be opened')
      }
    })
    await Promise.all(opening)
    const inDoubt = candidates.filter(({ action }) => action === 'check')
    this.#late = this.#goOn(inDoubt, roomless)
    return openings.map(({ shard }) => shard).filter((shard) => this.serves(shard))
  }

  /** @throws NotOwnerError if another node owns the shard, or the error of the store */
  openShard(opening: ShardOpening): Promise<void> {
    return this.#inTurn(opening.shard, async () => {
      if (this.#stopping.signal.aborted) throw new Error('the worker gives up its shards')
      if (this.#modeOf(opening.shard) === 'closed') await this.#openOne(opening)
    })
  }

  leave(index: number, responses: OpenResponsesView): Promise<void> {
    return this.#inTurn(index, async () => {
      const { bots, clock, isUnderWay, shardStreams } = this.#options
      const shard = await this.#openOrForgotten(index)
      if (shard === undefined) return
      const departure = {
        clock,
        bots: {
          pauseDeliveries: (deadlineMs: number) => bots.pauseDeliveries(deadlineMs, shard),
          drain: (deadlineMs: number) => bots.drain(deadlineMs, shard),
        },
        isUnderWay: (response: ServerResponse) => isUnderWay(response, index),
        streams: shardStreams,
        toElsewhere: () => void this.#to(index, 'leaving'),
        closeShards: () => this.#close(shard),
      }
      await settle(departure, responses)
      await leave(departure, responses)
    })
  }

  drop(index: number): Promise<void> {
    return this.#inTurn(index, async () => {
      const shard = await this.#openOrForgotten(index)
      if (shard === undefined) return
      await this.#to(index, 'leaving')
      await this.#close(shard)
    })
  }

  /** Resolves when all shards are closed. No shard is opened afterward. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#late
    await Promise.all(Array.from(this.#turns.values(), (turns) => turns.idle()))
    await Promise.all(Array.from(this.#open.values(), (shard) => this.#closeStore(shard)))
  }

  /** Decides what is done with each shard, and marks it before any shard is opened: opening one may end this process. */
  async #candidates(openings: readonly ShardOpening[]): Promise<readonly Candidate[]> {
    const { dataDir, engine, marks, past: worker } = this.#options
    const { files } = engine
    // A store without files of its own cannot end this process.
    if (files === undefined) return openings.map((opening) => ({ ...opening, action: 'open' }))
    const pasts = await Promise.all(
      openings.map(async ({ shard }) => {
        const [life, broken] = [await marks.life(shard), await marks.broken(shard)]
        const wasCompacting = await files.wasCompacting(shardPath(dataDir, shard))
        return { life, broken, isBroken: isDamage(broken), wasCompacting }
      }),
    )
    const candidates: Candidate[] = []
    for (const [nth, { action, deaths }] of openingVerdicts(pasts, worker).entries()) {
      const [opening, past] = [openings[nth], pasts[nth]]
      if (opening === undefined || past === undefined) continue
      candidates.push({ ...opening, action })
      const { shard } = opening
      const { life, broken } = past
      // Earlier damage may have been repaired.
      const isUnchecked =
        life.isUnchecked || life.phase !== 'closed' || (await marks.hasDamaged(shard))
      this.#lives.set(shard, { phase: life.phase, isUnchecked, deaths })
      await marks.setChecking(shard, action === 'check')
      if (action === 'check') {
        await this.#to(shard, 'doubtful')
        if (past.isBroken) this.#options.bots.setAside(shard)
      }
      if (action === 'leave')
        await this.#setAside(shard, broken ?? this.#unknownDamage(shard, deaths))
    }
    return candidates
  }

  #unknownDamage(index: number, deaths: number): FileDamage {
    const { dataDir, past } = this.#options
    const how = past.crash === undefined ? '' : `, the last time by ${past.crash.signal}`
    const reason = `${deaths} processes in a row died while they opened or compacted this shard${how}; a check of its files found nothing`
    return { file: shardPath(dataDir, index), reason }
  }

  async #goOn(inDoubt: readonly ShardOpening[], roomless: Set<ShardOpening>): Promise<void> {
    for (const opening of inDoubt) await this.#openLate(opening)
    await this.#awaitRoom(roomless)
    for (const index of this.#open.keys()) await this.#checkOpen(index)
  }

  /** Checks the files of a shard as fast as possible, and opens it if they are sound. */
  async #openLate(opening: ShardOpening): Promise<void> {
    const { clock, log, marks } = this.#options
    const { shard } = opening
    while (!this.#stopping.signal.aborted) {
      try {
        log.info({ shard }, 'the files of a shard are being checked before it is opened')
        const checked = await this.#check(shard, undefined)
        if (checked === undefined) return
        if (checked.fatal !== undefined) await this.#setAside(shard, checked.fatal)
        else await this.#inTurn(shard, () => this.#openOne(opening, { isUnchecked: false }))
        await marks.setChecking(shard, false)
        return
      } catch (error) {
        log.error({ shard, error: String(error) }, isTriedAgain)
      }
      await sleep(clock, lateOpeningRetryMs, this.#stopping.signal)
    }
  }

  /** Opens shards when the disk has room for them, one by one, so that none takes it from another. */
  async #awaitRoom(roomless: Set<ShardOpening>): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    while (roomless.size > 0) {
      await sleep(clock, roomlessOpeningRetryMs, signal)
      for (const opening of roomless) {
        if (signal.aborted) return
        const { shard } = opening
        try {
          if (!(await this.#openIfRoom(opening))) continue
          roomless.delete(opening)
          log.info({ shard }, 'the disk has room for a shard again, and it is served')
        } catch (error) {
          log.error({ shard, error: String(error) }, isTriedAgain)
        }
      }
    }
  }

  /** Returns whether the disk had room. Otherwise the shard is set aside. */
  #openIfRoom(opening: ShardOpening): Promise<boolean> {
    const { shard } = opening
    return this.#inTurn(shard, async () => {
      const before = this.#modeOf(shard)
      if (before !== 'closed' && before !== 'aside') return true
      try {
        await this.#openOne(opening)
      } catch (error) {
        // The disk of a database is no concern of one node.
        if (this.#options.engine.files === undefined || !isOutOfRoom(error)) throw error
        const damage = noRoomFor(shardPath(this.#options.dataDir, shard))
        if (before === 'closed') await this.#setAside(shard, damage, hasNoRoom)
        return false
      }
      return true
    })
  }

  async #openOne(opening: ShardOpening, change: Partial<ShardLife> = {}): Promise<void> {
    const { clocks, engine, leases, marks, onServed } = this.#options
    const { shard: index, boot } = opening
    const before = this.#modeOf(index)
    await this.#to(index, 'opening', change)
    const options = {
      ...this.#options,
      clock: clocks.ofShard(index),
      lease: leases.ofShard(index, boot),
      onReset: (shard: Shard) => this.#readAnew(shard),
      onReadFailed: (error: unknown) => this.#readFailed(index, error),
      onUnreadable: (error: unknown) => this.#unreadable(index, error),
    }
    let shard: Shard
    try {
      shard = await openShard(options, opening)
    } catch (error) {
      const damage = error instanceof ShardDamaged ? error : this.#damageOf(error, index)
      if (damage !== undefined && (await engine.files?.isFailedWrite(error)) !== true) {
        return this.#setAside(index, damage)
      }
      await this.#to(index, before)
      throw error
    }
    this.#open.set(index, shard)
    await this.#to(index, 'open')
    await marks.setBroken(index, undefined)
    onServed(shard)
  }

  /** Checks the files of a shard that its last process did not close. */
  async #checkOpen(index: number): Promise<void> {
    const isUnchecked = this.#lives.get(index)?.isUnchecked === true
    if (this.#stopping.signal.aborted || !isUnchecked) return
    try {
      const checked = await this.#check(index, backgroundCheckBytesPerS)
      if (checked !== undefined) await this.#record(index, { isUnchecked: false })
    } catch (error) {
      this.#options.log.error({ shard: index, error: String(error) }, couldNotBeChecked)
    }
  }

  #check(index: number, bytesPerS: number | undefined): Promise<CheckedShard | undefined> {
    return this.#options.checker.check(index, { bytesPerS, signal: this.#stopping.signal })
  }

  async #setAside(
    index: number,
    damage: FileDamage,
    message = this.#options.engine.asideText,
  ): Promise<void> {
    const { bots, log } = this.#options
    bots.setAside(index)
    await this.#to(index, 'aside')
    await this.#reportBroken(index, damage)
    const { file, offset, reason } = damage
    log.error({ shard: index, file, offset, reason }, message)
  }

  async #reportBroken(shard: number, damage: FileDamage): Promise<void> {
    const { clock, marks, report } = this.#options
    const { file, offset, reason } = damage
    report({ type: 'shard.broken', timeMs: clock.nowMs(), shard, reason })
    await marks.setBroken(shard, { file, offset, reason })
  }

  #readAnew(shard: Shard): void {
    if (this.#modeOf(shard.index) === 'unreadable') {
      void this.#to(shard.index, 'open')
      void this.#options.marks.setBroken(shard.index, undefined)
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
      log.error({ shard: index, error: String(failure) }, couldNotBeChecked)
    })
  }

  /** After a failed write the shard cannot be reopened. If damage is the reason, it is listed with the shards set aside. */
  #unreadable(index: number, error: unknown): void {
    const damage = this.#damageOf(error, index)
    if (damage === undefined || this.#modeOf(index) !== 'open') return
    void this.#to(index, 'unreadable')
    void this.#reportBroken(index, damage)
  }

  /** Only files may be damaged while they are in use. */
  #damageOf(error: unknown, index: number): FileDamage | undefined {
    const { dataDir, engine } = this.#options
    return engine.files?.damageOf(error, shardPath(dataDir, index))
  }

  /** Returns a shard that is open; one that is set aside is no concern of this worker any more. */
  async #openOrForgotten(index: number): Promise<Shard | undefined> {
    const { bots, marks } = this.#options
    if (this.#modeOf(index) === 'aside') {
      bots.forgetAside(index)
      await this.#to(index, 'closed')
      await marks.setBroken(index, undefined)
    }
    return this.#open.get(index)
  }

  async #close(shard: Shard): Promise<void> {
    this.#options.onLeft(shard)
    await this.#options.bots.removeShard(shard)
    await this.#closeStore(shard)
  }

  async #closeStore(shard: Shard): Promise<void> {
    if (shard.status === 'poisoned') this.#options.counters.add('shards_poisoned', -1)
    await shard.close()
    this.#open.delete(shard.index)
    await this.#to(shard.index, 'closed', { deaths: 0 })
  }

  #modeOf(index: number): ShardMode {
    return this.#modes.get(index) ?? 'closed'
  }

  /** The mode changes immediately. Resolves when the next process would learn of it. */
  async #to(index: number, mode: ShardMode, change: Partial<ShardLife> = {}): Promise<void> {
    this.#modes.set(index, changedShardMode(this.#modeOf(index), mode))
    const before = this.#broken.size
    if (isBroken(mode)) this.#broken.add(index)
    else if (mode !== 'opening') this.#broken.delete(index)
    const more = this.#broken.size - before
    if (more !== 0) this.#options.counters.add('shards_broken', more)
    await this.#record(index, change)
  }

  async #record(index: number, change: Partial<ShardLife>): Promise<void> {
    const { engine, marks } = this.#options
    if (engine.files === undefined) return
    const before = this.#lives.get(index) ?? { isUnchecked: false, deaths: 0 }
    const life = { ...before, ...change, phase: phaseOf[this.#modeOf(index)] }
    this.#lives.set(index, life)
    await marks.setLife(index, life)
  }

  #inTurn<Result>(index: number, work: () => Promise<Result>): Promise<Result> {
    let turns = this.#turns.get(index)
    if (turns === undefined) this.#turns.set(index, (turns = new Mutex()))
    return turns.run(work)
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
const couldNotBeChecked = 'the files of a shard could not be checked'
