/**
 * One shard of a worker, whatever stores it: this opens it, sets it aside if it is damaged, and closes it. shard-mode.ts draws
 * its life cycle.
 *
 *   leave    serves it until nothing takes long, answers what is in progress, and closes it: another node may open it
 *   drop     another node owns it already: everything of it in memory is void, and nothing of it can be written
 *
 * What is done with it is done in turn.
 */
import type { ServerResponse } from 'node:http'
import type { BotCache } from '../bots/bot-cache.ts'
import type { ShardMap } from '../process/shard-map.ts'
import type { ShardOpening } from '../process/shard-assignment.ts'
import { type DepartureOptions, leave, type OpenResponsesView, settle } from './departure.ts'
import type { ReportEvent } from '../kit/operator-event.ts'
import { Mutex } from '../kit/mutex.ts'
import { shardPath } from '../shard/data-directory.ts'
import { IdMark } from '../shard/id-mark.ts'
import { openRecounted } from '../shard/recovery/open-recounted.ts'
import { botIdOf, isTestQueue, type QueueId } from '../shard/records/record-keys.ts'
import type { Operation } from '../shard/operations.ts'
import { Shard } from '../shard/shard.ts'
import type { ShardLife, ShardMarks } from '../shard/recovery/shard-marks.ts'
import { foreignFault } from '../shard/shard-records.ts'
import { type FileDamage, ShardDamaged } from '../store/shard-damaged.ts'
import type { StoreEngine } from '../store/store-engine.ts'
import type { Surroundings } from '../kit/surroundings.ts'
import type { Databases } from './databases.ts'
import type { OpeningVerdict, ShardPast } from './opening-verdict.ts'
import type { ShardChecker } from './shard-checker.ts'
import { changedShardMode, isBroken, phaseOf, type ShardMode } from './shard-mode.ts'

export interface WorkerShardOptions extends Pick<Surroundings, 'clock' | 'log' | 'counters'> {
  readonly dataDir: string
  readonly engine: StoreEngine
  readonly map: Pick<ShardMap, 'shardOf'>
  readonly bots: BotCache
  /** Learns what every group has changed. */
  /** Learns what was committed, before the bots do. */
  readonly onCommitted: (shard: Shard, operations: readonly Operation[]) => void
  readonly report: ReportEvent
  readonly marks: Omit<ShardMarks, 'setDamaged'>
  readonly checker: Pick<ShardChecker, 'announce' | 'check' | 'request' | 'thread' | 'verify'>
  readonly databases: Pick<Databases, 'clockOf' | 'leaseOf'>
  /** What ends when a shard leaves: its pairs are for that shard, and an export asks again. */
  readonly streamsOf: (shard: number) => readonly { stop(): void }[]
  /** Whether this worker is answering the request, which is for this shard, from its own shards. */
  readonly isUnderWay: (response: ServerResponse, shard: number) => boolean
  readonly isBrief: DepartureOptions['isBrief']
  /** The shard is served from now on, or was read anew. */
  readonly onServed: (shard: Shard) => void
  /** The shard is not served any more, from now on. */
  readonly onLeft: (shard: Shard) => void
}

interface Aside {
  readonly damage: FileDamage
  unsound: string | undefined
  seen: string | undefined
}

export class WorkerShard {
  readonly #options: WorkerShardOptions
  readonly #index: number
  readonly #path: string
  /** Aborted when the worker gives up its shards. */
  readonly #stopping: AbortSignal
  readonly #turns = new Mutex()
  #mode: ShardMode = 'closed'
  #life: Omit<ShardLife, 'phase'> = { isUnchecked: false, deaths: 0 }
  #shard: Shard | undefined
  /** Why it is set aside, and what its files were when they were last known to be unsound, and when they were last looked at. */
  #aside: Aside | undefined
  /** Whether the operator is told of it, until it is open. */
  #isBroken = false
  /** Whether its files were checked because a read has met damage. */
  #isSuspected = false
  /** The reads that failed since the log told of one, and when it did. */
  #failedReads = 0
  #readsToldMs = Number.NEGATIVE_INFINITY

  constructor(options: WorkerShardOptions, index: number, stopping: AbortSignal) {
    this.#options = options
    this.#index = index
    this.#path = shardPath(options.dataDir, index)
    this.#stopping = stopping
  }

  /** Whether its requests are answered here; those of one that is set aside are refused. */
  get isServed(): boolean {
    return this.#mode === 'open' || isBroken(this.#mode)
  }

  /** What earlier processes have left in the marks and files of the shard. */
  async past(): Promise<ShardPast> {
    const { engine, marks } = this.#options
    const life = await marks.life(this.#index)
    const damage = await marks.broken(this.#index)
    const wasCompacting = (await engine.files?.wasCompacting(this.#path)) === true
    // A shard without room is opened by the next process like any other.
    return { life, isBroken: damage !== undefined && damage.reason !== noRoom, wasCompacting }
  }

  /** Marks what will be done with the shard, before any shard is opened: opening one may end this process. */
  async begin(past: ShardPast, { action, deaths }: OpeningVerdict, how: string): Promise<void> {
    const { bots, marks } = this.#options
    const { life, isBroken: wasBroken } = past
    // Earlier damage may have been repaired.
    const isUnchecked =
      life.isUnchecked || life.phase !== 'closed' || (await marks.hasDamaged(this.#index))
    this.#life = { isUnchecked, deaths }
    await marks.setChecking(this.#index, action === 'check')
    if (action === 'check') {
      await this.#to('doubtful')
      if (wasBroken) bots.setAside(this.#index)
    } else if (action === 'leave') {
      const reason = `${deaths} processes in a row died while they opened or compacted this shard${how}; a check of its files found nothing`
      const before = await marks.broken(this.#index)
      await this.#setAside(before ?? { file: this.#path, reason })
    }
  }

  /** Removes what the last process of this worker may have left. */
  forgetPast(): Promise<void> {
    return this.#options.marks.setBroken(this.#index, undefined)
  }

  /**
   * Opens the shard, unless it is open already.
   *
   * @returns whether the disk had room. Otherwise the shard is set aside, until a later call finds room.
   * @throws NotOwnerError if another node owns the shard, or the error of the store
   */
  open(opening: ShardOpening): Promise<boolean> {
    const { files } = this.#options.engine
    return this.#turns.run(async () => {
      if (this.#stopping.aborted) throw new Error('the worker gives up its shards')
      const before = this.#mode
      const mayLackRoom = before === 'aside' && files !== undefined
      if (before !== 'closed' && !mayLackRoom) return true
      try {
        await this.#open(opening)
        return true
      } catch (error) {
        // The disk of a database is no concern of one node.
        if (files?.isOutOfRoom(error) !== true) throw error
        if (!mayLackRoom) await this.#setAside({ file: this.#path, reason: noRoom }, hasNoRoom)
        return false
      }
    })
  }

  /** Opens the shard if a check of all of its tables finds no damage, or sets it aside. */
  async openChecked(opening: ShardOpening): Promise<void> {
    const { log, marks } = this.#options
    log.info({ shard: this.#index }, 'the files of a shard are being checked before it is opened')
    await this.#turns.run(async () => {
      if (!this.#stopping.aborted) await this.#open(opening, { isDoubted: true })
    })
    await marks.setChecking(this.#index, false)
  }

  /**
   * Opens the shard if it was set aside and its files are sound now: somebody has changed them since the last call but one, or they
   * could not be read. Whoever changes them may not be done before the next call.
   */
  async openIfMended(opening: ShardOpening): Promise<void> {
    const { checker, clock, engine, log } = this.#options
    const aside = this.#mode === 'aside' ? this.#aside : undefined
    // One that lacks room is tried by `open`.
    if (engine.files === undefined || aside === undefined || aside.damage.reason === noRoom) return
    const now = await engine.files.fingerprint(this.#path)
    const isQuiet = now === aside.seen
    aside.seen = now
    aside.unsound ??= now
    if (!isQuiet || (now === aside.unsound && !mayPass(aside.damage))) return
    const verification = { directory: this.#path, clock, thread: checker.thread }
    if (!(await engine.files.mayBeSound(verification))) {
      aside.unsound = now
      return
    }
    await this.#turns.run(async () => {
      if (this.#mode === 'aside' && !this.#stopping.aborted) await this.#open(opening)
    })
    if (this.#shard === undefined) return
    log.info({ shard: this.#index }, isMended)
    // What was named may be mended.
    this.#requestCheck()
  }

  /** Verifies the files of an open shard. */
  async verifyOpen(): Promise<void> {
    if (this.#stopping.aborted || this.#shard === undefined) return
    try {
      await this.#options.checker.verify(this.#index, this.#stopping)
    } catch (error) {
      this.#options.log.error({ shard: this.#index, error: String(error) }, couldNotBeChecked)
    }
  }

  /** Checks the files of an open shard that its last process did not close. */
  async checkOpen(bytesPerS: number): Promise<void> {
    if (this.#stopping.aborted || this.#shard === undefined || !this.#life.isUnchecked) return
    try {
      const checked = await this.#options.checker.check(this.#index, {
        bytesPerS,
        signal: this.#stopping,
      })
      if (checked !== undefined) await this.#record({ isUnchecked: false })
    } catch (error) {
      this.#options.log.error({ shard: this.#index, error: String(error) }, couldNotBeChecked)
    }
  }

  leave(responses: OpenResponsesView): Promise<void> {
    const { bots, clock, isBrief, isUnderWay, streamsOf } = this.#options
    return this.#part(async (shard) => {
      const departure = {
        clock,
        bots,
        shard,
        isUnderWay: (response: ServerResponse) => isUnderWay(response, this.#index),
        isBrief,
        streams: () => streamsOf(this.#index),
        toElsewhere: () => void this.#to('leaving'),
        closeShards: () => this.#close(shard),
      }
      await settle(departure, responses)
      await leave(departure, responses)
    })
  }

  drop(): Promise<void> {
    return this.#part(async (shard) => {
      await this.#to('leaving')
      await this.#close(shard)
    })
  }

  /** The worker ends: closes the store. */
  end(): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#shard !== undefined) await this.#closeStore(this.#shard)
    })
  }

  async #open(opening: ShardOpening, { isDoubted } = { isDoubted: false }): Promise<void> {
    const { engine, marks, onServed } = this.#options
    const before = this.#mode
    await this.#to('opening')
    let shard: Shard
    try {
      shard = await this.#openStore(opening, isDoubted)
    } catch (error) {
      const damage = error instanceof ShardDamaged ? error : this.#damageOf(error)
      if (damage !== undefined && (await engine.files?.isFailedWrite(error)) !== true) {
        return this.#setAside(damage)
      }
      await this.#to(before)
      throw error
    }
    this.#shard = shard
    this.#aside = undefined
    await this.#to('open')
    await marks.setBroken(this.#index, undefined)
    onServed(shard)
  }

  /** Connects the shard to the bots in memory. If that fails, nothing stays open; the error names the directory. */
  async #openStore({ boot }: ShardOpening, isDoubted: boolean): Promise<Shard> {
    const { bots, checker, counters, databases, dataDir, engine, log, map } = this.#options
    const index = this.#index
    const clock = databases.clockOf(index)
    // It survives the loss of the shard's files. Another store loses nothing of a shard.
    const idMark = engine.files && (await IdMark.read({ directory: dataDir, shard: index }))
    const opened = await engine.open({
      shard: index,
      boot,
      directory: this.#path,
      clock,
      log,
      // The shard uses the store, and exists when that is open.
      onEnded: (error) => shard.storeEnded(error),
      keyFault: (key) =>
        foreignFault(key, { shard: index, shardOf: (botId) => map.shardOf(botId) }),
      onTornEnd: () => idMark?.tear(),
      verifyThread: checker.thread,
      isDoubted,
    })
    // What LevelDB does to a table that was not verified may hide its damage from everything but a check of all records.
    if (opened.isUnverified === true) this.#life = { ...this.#life, isUnchecked: true }
    const shard: Shard = new Shard({
      index,
      lease: databases.leaseOf(index, boot),
      idMark,
      clock,
      log,
      store: opened.store,
      onCommitted: (operations) => {
        counters.add('store_groups', 1)
        counters.add('store_operations', operations.length)
        bots.committed(operations)
        // After the bots, whose pushes must be seen whatever a module makes of them.
        this.#options.onCommitted(shard, operations)
      },
      onSynced: (durationMs) => counters.observe('sync', durationMs),
      onFailed: () => this.#failed(),
      onReset: () => this.#readAnew(shard),
      onDamagedRecord: () => this.#suspect('a record is damaged'),
      onMissing: (queue, count) => void this.#missing(queue, count),
      onReadFailed: (error) => this.#readFailed(error),
      onReopenFailed: (error) => this.#unreadable(error),
      probe: () => opened.probe(),
    })
    try {
      await openRecounted({ shard, opened, idMark })
    } catch (error) {
      // Close what was opened: otherwise the next attempt would find the database locked.
      // Only the failure to open the shard is reported.
      await Promise.allSettled([shard.close()])
      await Promise.allSettled([opened.store.close()])
      throw error
    }
    bots.addShard(shard)
    return shard
  }

  /** A write has failed: the shard refuses everything until it was read anew. */
  #failed(): void {
    const { clock, counters, report } = this.#options
    counters.add('store_failures', 1)
    counters.add('shards_poisoned', 1)
    report({ type: 'shard.poisoned', timeMs: clock.nowMs(), shard: this.#index })
  }

  #readAnew(shard: Shard): void {
    const { bots, counters, log, marks, onServed } = this.#options
    counters.add('shards_poisoned', -1)
    void bots.resetShard(shard).catch((error: unknown) => {
      log.error({ shard: this.#index, error: String(error) }, couldNotBeReadAgain)
    })
    if (this.#mode === 'unreadable') {
      void this.#to('open')
      void marks.setBroken(this.#index, undefined)
      // What was named may be mended.
      this.#requestCheck()
    }
    onServed(shard)
  }

  #readFailed(cause: unknown): void {
    const damage = this.#damageOf(cause)
    if (damage !== undefined) this.#suspect(damage.reason)
    else this.#tellOfReads(cause)
  }

  #tellOfReads(cause: unknown): void {
    const { clock, log } = this.#options
    this.#failedReads += 1
    const nowMs = clock.monotonicMs()
    if (nowMs < this.#readsToldMs + readsToldPeriodMs) return
    const [reads, error] = [this.#failedReads, String(cause)]
    log.warn({ shard: this.#index, reads, error }, couldNotBeRead)
    this.#failedReads = 0
    this.#readsToldMs = nowMs
  }

  /**
   * A read has met damage, and may know neither file nor offset: a check of the files finds them, and closes the shard if a
   * compaction could hide more. It runs once, because every further read may meet the same.
   */
  #suspect(reason: string): void {
    const { engine, log } = this.#options
    if (engine.files === undefined || this.#isSuspected || this.#stopping.aborted) return
    this.#isSuspected = true
    log.error({ shard: this.#index, reason }, hasMetDamage)
    this.#requestCheck()
  }

  #requestCheck(): void {
    const { checker, log } = this.#options
    checker
      .request(this.#index)
      .catch((reason: unknown) =>
        log.error({ shard: this.#index, error: String(reason) }, couldNotBeChecked),
      )
  }

  async #missing(queue: QueueId, count: number): Promise<void> {
    const what = count === 1 ? 'an update' : `${count} updates`
    const of = isTestQueue(queue) ? 'the test queue of bot' : 'bot'
    const reason = `${what} of ${of} ${botIdOf(queue)} cannot be found or read`
    await this.#options.checker.announce(this.#index, [{ file: this.#path, reason }])
    this.#suspect(reason)
  }

  /** After a failed write the shard cannot be reopened. If damage is the reason, it is listed with the shards set aside. */
  #unreadable(error: unknown): boolean {
    const damage = this.#damageOf(error)
    if (damage !== undefined && this.#mode === 'open') {
      void this.#to('unreadable')
      void this.#reportBroken(damage)
    }
    return damage !== undefined
  }

  async #setAside(damage: FileDamage, message = this.#options.engine.asideText): Promise<void> {
    const { bots, log } = this.#options
    bots.setAside(this.#index)
    this.#aside = { damage, unsound: undefined, seen: undefined }
    await this.#to('aside')
    await this.#reportBroken(damage)
    const { file, offset, reason } = damage
    log.error({ shard: this.#index, file, offset, reason }, message)
  }

  async #reportBroken({ file, offset, reason }: FileDamage): Promise<void> {
    const { clock, marks, report } = this.#options
    report({ type: 'shard.broken', timeMs: clock.nowMs(), shard: this.#index, reason })
    await marks.setBroken(this.#index, { file, offset, reason })
  }

  /** Closes an open shard by `work`; one that is set aside is no concern of this worker any more. */
  #part(work: (shard: Shard) => Promise<void>): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#mode === 'aside') {
        this.#options.bots.forgetAside(this.#index)
        await this.#to('closed')
        await this.forgetPast()
      }
      if (this.#shard !== undefined) await work(this.#shard)
    })
  }

  async #close(shard: Shard): Promise<void> {
    this.#options.onLeft(shard)
    await this.#options.bots.removeShard(shard)
    await this.#closeStore(shard)
  }

  async #closeStore(shard: Shard): Promise<void> {
    if (shard.status === 'poisoned') this.#options.counters.add('shards_poisoned', -1)
    await shard.close()
    this.#shard = undefined
    await this.#to('closed', { deaths: 0 })
  }

  /** Only files may be damaged while they are in use. */
  #damageOf(error: unknown): FileDamage | undefined {
    return this.#options.engine.files?.damageOf(error, this.#path)
  }

  /** The mode changes immediately. Resolves when the next process would learn of it. */
  async #to(mode: ShardMode, change: Partial<ShardLife> = {}): Promise<void> {
    this.#mode = changedShardMode(this.#mode, mode)
    const wasBroken = this.#isBroken
    if (mode !== 'opening') this.#isBroken = isBroken(mode)
    const more = Number(this.#isBroken) - Number(wasBroken)
    if (more !== 0) this.#options.counters.add('shards_broken', more)
    await this.#record(change)
  }

  async #record(change: Partial<ShardLife>): Promise<void> {
    const { engine, marks } = this.#options
    if (engine.files === undefined) return
    this.#life = { ...this.#life, ...change }
    await marks.setLife(this.#index, { ...this.#life, phase: phaseOf[this.#mode] })
  }
}

/** Reads of a shard that failed are told of this often at the most: while its database is away, all of them fail. Chosen. */
const readsToldPeriodMs = 1_000
const couldNotBeRead = 'reads of a shard have failed, and what needed them was refused'
const noRoom = 'the disk has no room to open it; it is tried again until there is room'
const hasNoRoom =
  'a shard is set aside because the disk has no room to open it, and all others are served: make room, and it is served without a restart'
/** Whether a disk could not read a file, which may pass without any change of the file. */
function mayPass({ reason }: FileDamage): boolean {
  return /\bEIO\b|input\/output error/i.test(reason)
}

const isMended = 'the files of a shard that was set aside are sound again, and it is served'
const couldNotBeReadAgain = 'a shard could not be read again from disk'
const hasMetDamage = 'a read of this shard has met damage; its files are being checked'
const couldNotBeChecked = 'the files of a shard could not be checked'
