/**
 * The shards of a worker whose store is a database: they come and go while the worker serves, as the primary asks for it.
 *
 *   open     claims the shard and serves its bots; rejects if another node owns it. If its tables are wrong, the shard is set
 *            aside instead: its bots are refused, until this worker is replaced or another node opens the shard
 *   leave    serves on until nothing takes long, answers what is in progress, and closes the shard: another node may open it
 *   drop     another node owns the shard already: everything of it in memory is void. Nothing of it can be written
 *
 * All three of one shard run one after the other.
 */
import type { ServerResponse } from 'node:http'
import type { BotCache } from '../bots/bot-cache.ts'
import type { ShardOpening } from '../cluster/shard-assignment.ts'
import { Departure, type OpenResponsesView } from '../cluster/worker/departure.ts'
import { Mutex } from '../kit/mutex.ts'
import type { Shard } from '../shard/shard.ts'
import type { ShardMarks } from '../shard/shard-marks.ts'
import { ShardDamaged } from '../store/shard-damaged.ts'
import type { DatabaseClocks } from './database-clocks.ts'
import type { DatabaseLeases } from './database-leases.ts'
import { openShard, type ShardOpenerOptions } from './shard-opener.ts'

export interface ClaimedShardsOptions
  extends Omit<ShardOpenerOptions, 'boot' | 'lease' | 'onReset' | 'onReadFailed' | 'onUnreadable'> {
  readonly bots: BotCache
  /** The shards that this worker may have. */
  readonly shards: readonly number[]
  readonly marks: Pick<ShardMarks, 'setBroken'>
  readonly leases: Pick<DatabaseLeases, 'ofShard'>
  readonly clocks: Pick<DatabaseClocks, 'ofShard'>
  /** Streams of other workers, whose pairs may be for a shard that leaves. */
  readonly peerStreams: ReadonlySet<{ stop(): void }>
  /** Exports, of this shard or of others: they ask again. */
  readonly recordStreams: ReadonlySet<{ stop(): void }>
  /** Whether this worker is answering the request, which is for this shard, from its own shards. */
  readonly isUnderWay: (response: ServerResponse, shard: number) => boolean
  /** The shard is served from now on, or was read anew. */
  readonly onServed: (shard: Shard) => void
  /** The shard is not served any more, from now on. */
  readonly onLeft: (shard: Shard) => void
}

export class ClaimedShards {
  readonly #options: ClaimedShardsOptions
  readonly #open = new Map<number, Shard>()
  readonly #aside = new Set<number>()
  readonly #leaving = new Set<number>()
  readonly #turns = new Map<number, Mutex>()
  #isClosed = false

  constructor(options: ClaimedShardsOptions) {
    this.#options = options
  }

  /** Whether requests for the shard are answered here. */
  serves(shard: number): boolean {
    return this.#aside.has(shard) || (this.#open.has(shard) && !this.#leaving.has(shard))
  }

  /** Opens the shards that can be opened. Returns all that are open or set aside. */
  async open(openings: readonly ShardOpening[]): Promise<readonly number[]> {
    const { log, marks, shards } = this.#options
    // The last process of this worker may have left them.
    await Promise.all(shards.map((index) => marks.setBroken(index, undefined)))
    await Promise.all(
      openings.map(async (opening) => {
        try {
          await this.openOne(opening)
        } catch (error) {
          log.warn({ shard: opening.shard, error: String(error) }, 'a shard could not be opened')
        }
      }),
    )
    return [...this.#open.keys(), ...this.#aside]
  }

  /** @throws NotOwnerError if another node owns the shard, or the error of the database */
  openOne({ shard: index, boot }: ShardOpening): Promise<void> {
    return this.#inTurn(index, async () => {
      if (this.#isClosed) throw new Error('the worker gives up its shards')
      if (this.#open.has(index) || this.#aside.has(index)) return
      const { clocks, leases, onServed } = this.#options
      const options = {
        ...this.#options,
        boot,
        clock: clocks.ofShard(index),
        lease: leases.ofShard(index, boot),
        onReset: onServed,
        onReadFailed: ignore,
        onUnreadable: ignore,
      }
      let shard: Shard
      try {
        shard = await openShard(options, index)
      } catch (error) {
        if (!(error instanceof ShardDamaged)) throw error
        await this.#setAside(index, error)
        return
      }
      this.#open.set(index, shard)
      onServed(shard)
    })
  }

  leave(index: number, answers: OpenResponsesView): Promise<void> {
    return this.#inTurn(index, async () => {
      await this.#forgetAside(index)
      const shard = this.#open.get(index)
      if (shard === undefined) return
      const departure = this.#departureOf(shard)
      await departure.settle(answers)
      await departure.leave(answers)
    })
  }

  drop(index: number): Promise<void> {
    return this.#inTurn(index, async () => {
      await this.#forgetAside(index)
      const shard = this.#open.get(index)
      if (shard !== undefined) await this.#close(shard)
    })
  }

  /** Resolves when all shards are closed. No shard is opened afterward. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(Array.from(this.#turns.values(), (turns) => turns.idle()))
    await Promise.all(Array.from(this.#open.values(), (shard) => this.#closeStore(shard)))
    this.#open.clear()
  }

  async #setAside(index: number, { file, reason }: ShardDamaged): Promise<void> {
    const { bots, clock, counters, log, marks, report } = this.#options
    this.#aside.add(index)
    bots.setAside(index)
    counters.add('shards_broken', 1)
    await marks.setBroken(index, { file, reason })
    report({ type: 'shard.broken', timeMs: clock.nowMs(), shard: index, reason })
    log.error({ shard: index, file, reason }, isSetAside)
  }

  async #forgetAside(index: number): Promise<void> {
    const { bots, counters, marks } = this.#options
    if (!this.#aside.delete(index)) return
    bots.forgetAside(index)
    counters.add('shards_broken', -1)
    await marks.setBroken(index, undefined)
  }

  #departureOf(shard: Shard): Departure {
    const { bots, clock, isUnderWay, peerStreams, recordStreams } = this.#options
    return new Departure({
      clock,
      router: {
        toSettling: ignore,
        toElsewhere: () => void this.#leaving.add(shard.index),
        isUnderWay: (response) => isUnderWay(response, shard.index),
      },
      bots: {
        pauseDeliveries: (deadlineMs) => bots.pauseDeliveries(deadlineMs, shard),
        drain: (deadlineMs) => bots.drain(deadlineMs, shard),
      },
      streams: [peerStreams, recordStreams],
      pacing: { releaseAll: ignore },
      sweepers: [],
      closeShards: () => this.#close(shard),
    })
  }

  async #close(shard: Shard): Promise<void> {
    const { bots, onLeft } = this.#options
    this.#leaving.add(shard.index)
    onLeft(shard)
    await bots.removeShard(shard)
    await this.#closeStore(shard)
    this.#open.delete(shard.index)
    this.#leaving.delete(shard.index)
  }

  async #closeStore(shard: Shard): Promise<void> {
    if (shard.status === 'poisoned') this.#options.counters.add('shards_poisoned', -1)
    await shard.close()
  }

  #inTurn(index: number, work: () => Promise<void>): Promise<void> {
    let turns = this.#turns.get(index)
    if (turns === undefined) this.#turns.set(index, (turns = new Mutex()))
    return turns.run(work)
  }
}

const isSetAside =
  'a shard is set aside because its tables are not as they were made, and all others are served: run postbote doctor, mend the tables, and reload the server'

function ignore(): void {
  // Nothing to do.
}
