/**
 * The shards of one worker (worker-shard.ts): those that it has, in the order in which they are opened. A single machine has all
 * of its shards for ever; those of a cluster come and go while the worker serves. A damaged shard costs its own bots only;
 * every other shard of the worker is served.
 *
 *   open        all shards without doubt, concurrently; the worker serves when they are open
 *   late        then those in doubt (opening-verdict.ts), one by one, so that a death shows which one caused it: all of their
 *               tables are verified, and they are opened if no damage is found
 *   background  from then on, slowly: the checksums of all of them, and all records of those that their last process did not close
 *
 * A shard is set aside if damage prevents its opening, or if two processes in a row have died over it; until its files have
 * changed and are sound, the server is restarted or reloaded, or another node has it. If the disk has no room to open it, it is
 * set aside only until there is. Missing permission or a failed write is no damage and affects every
 * shard of this machine: then the worker does not start.
 */
import assert from 'node:assert/strict'
import { sleep } from '../kit/clock.ts'
import type { ShardOpening } from '../process/shard-assignment.ts'
import { type OpeningVerdict, openingVerdicts, type WorkerPast } from './opening-verdict.ts'
import { WorkerShard, type WorkerShardOptions } from './worker-shard.ts'
import { mib } from '../kit/limits.ts'

export interface ShardSetOptions extends WorkerShardOptions {
  /** The shards that this worker may have. */
  readonly shards: readonly number[]
  readonly past: WorkerPast
}

/**
 * A background check reads at most this much per second from the disk. A check handles 50 MB per second of CPU, so this
 * takes 8 % of a worker.
 */
const backgroundCheckBytesPerS = 4 * mib
/**
 * A shard in doubt that could not be opened for a reason other than damage is tried again after this time: a full disk or
 * a lack of descriptors may end at any moment.
 */
export const lateOpeningRetryMs = 1_000
/**
 * A shard for which the disk has no room is tried again after this time. Chosen: each try writes up to 8 MiB until the disk is
 * full, and its operator needs longer to make room.
 */
export const roomlessOpeningRetryMs = 10_000

/**
 * The files of a shard that is set aside are looked at this often. Chosen: two looks are less than the 15 s after which a bot
 * should be served whose disk is well again.
 */
export const asideLookMs = 4_000
/** New tables are verified this often: with the damage that a disk does while it writes, a compaction seldom finds them first. */
export const verifyEveryMs = 600_000

export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #shards: ReadonlyMap<number, WorkerShard>
  readonly #stopping = new AbortController()
  #late: Promise<void> = Promise.resolve()

  constructor(options: ShardSetOptions) {
    this.#options = options
    const { signal } = this.#stopping
    this.#shards = new Map(
      options.shards.map((shard) => [shard, new WorkerShard(options, shard, signal)]),
    )
  }

  /** @throws Error if this worker cannot have the shard */
  of(shard: number): WorkerShard {
    const own = this.#shards.get(shard)
    assert(own !== undefined, `this worker may have the shard ${shard}`)
    return own
  }

  /** Whether requests for the shard are answered here: always, if no other node can have it. */
  serves(shard: number): boolean {
    return this.#options.engine.shared === undefined || this.#shards.get(shard)?.isServed === true
  }

  /**
   * Returns the numbers of the shards that are served. Rejects if one that no other node can have cannot be opened for a reason
   * other than damage; others are left out, and the primary decides again.
   */
  async open(openings: readonly ShardOpening[]): Promise<readonly number[]> {
    const { engine, log } = this.#options
    const actions = await this.#judge(openings)
    const roomless = new Set<ShardOpening>()
    const opening = openings.map(async (each, nth) => {
      if (actions[nth] !== 'open') return
      try {
        if (!(await this.of(each.shard).open(each))) roomless.add(each)
      } catch (error) {
        if (engine.shared === undefined) throw error
        log.warn({ shard: each.shard, error: String(error) }, 'a shard could not be opened')
      }
    })
    await Promise.all(opening)
    const doubtful = openings.filter((_, nth) => actions[nth] === 'check')
    this.#late = this.#goOn(openings, new Set(doubtful), roomless)
    return openings.map(({ shard }) => shard).filter((shard) => this.serves(shard))
  }

  /** Resolves when all shards are closed. No shard is opened afterward. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#late
    await Promise.all(Array.from(this.#shards.values(), (shard) => shard.end()))
  }

  /** Decides what is done with each shard, and marks it before any shard is opened: opening one may end this process. */
  async #judge(openings: readonly ShardOpening[]): Promise<readonly OpeningVerdict['action'][]> {
    const { engine, past: worker } = this.#options
    if (engine.files === undefined) {
      // A store without files of its own cannot end this process, but it may have left marks.
      await Promise.all(Array.from(this.#shards.values(), (shard) => shard.forgetPast()))
      return openings.map(() => 'open')
    }
    const shards = openings.map(({ shard }) => this.of(shard))
    const pasts = await Promise.all(shards.map((shard) => shard.past()))
    const verdicts = openingVerdicts(pasts, worker)
    const how = worker.crash === undefined ? '' : `, the last time by ${worker.crash.signal}`
    for (const [nth, shard] of shards.entries()) {
      const [past, verdict] = [pasts[nth], verdicts[nth]]
      if (past !== undefined && verdict !== undefined) await shard.begin(past, verdict, how)
    }
    return verdicts.map(({ action }) => action)
  }

  async #goOn(
    openings: readonly ShardOpening[],
    doubtful: Set<ShardOpening>,
    roomless: Set<ShardOpening>,
  ): Promise<void> {
    await this.#retry(doubtful, lateOpeningRetryMs, async (opening) => {
      await this.of(opening.shard).openChecked(opening)
      return true
    })
    await Promise.all([
      this.#openRoomless(roomless),
      ...(this.#options.engine.files === undefined
        ? []
        : [this.#openMended(openings), this.#checkOpen(), this.#verifyOpen()]),
    ])
  }

  /** One by one, so that none takes the room from another. */
  async #openRoomless(roomless: Set<ShardOpening>): Promise<void> {
    const { clock, log } = this.#options
    if (roomless.size === 0) return
    await sleep(clock, roomlessOpeningRetryMs, this.#stopping.signal)
    await this.#retry(roomless, roomlessOpeningRetryMs, async (opening) => {
      const hasRoom = await this.of(opening.shard).open(opening)
      if (hasRoom) log.info({ shard: opening.shard }, hasRoomAgain)
      return hasRoom
    })
  }

  /** Opens shards that were set aside when somebody has mended their files, or the disk reads them again. */
  async #openMended(openings: readonly ShardOpening[]): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted) {
      for (const opening of openings) {
        try {
          await this.of(opening.shard).openIfMended(opening)
        } catch (error) {
          log.error({ shard: opening.shard, error: String(error) }, isTriedAgain)
        }
      }
      await sleep(clock, asideLookMs, signal)
    }
  }

  async #checkOpen(): Promise<void> {
    for (const shard of this.#shards.values()) await shard.checkOpen(backgroundCheckBytesPerS)
  }

  /** Beside the checks of all records, which may take an hour after a crash. */
  async #verifyOpen(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted) {
      for (const shard of this.#shards.values()) await shard.verifyOpen()
      await sleep(clock, verifyEveryMs, signal)
    }
  }

  /** Tries all shards one by one, and those again for which `attempt` returns false or fails. */
  async #retry(
    openings: Set<ShardOpening>,
    everyMs: number,
    attempt: (opening: ShardOpening) => Promise<boolean>,
  ): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    while (openings.size > 0) {
      for (const opening of openings) {
        if (signal.aborted) return
        try {
          if (await attempt(opening)) openings.delete(opening)
        } catch (error) {
          log.error({ shard: opening.shard, error: String(error) }, isTriedAgain)
        }
      }
      if (openings.size > 0) await sleep(clock, everyMs, signal)
    }
  }
}

const isTriedAgain = 'a shard could not be opened and is tried again'
const hasRoomAgain = 'the disk has room for a shard again, and it is served'
