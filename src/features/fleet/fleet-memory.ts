/** What a fleet keeps over a restart of its worker: when bots polled last, and which troubles were reported and are not over. */
import type { Clock } from '../../kit/clock.ts'
import type { QueueId } from '../../shard/records/record-keys.ts'
import type { Shard } from '../../shard/shard.ts'
import type { FleetIndex } from './fleet-index.ts'
import type { QueueTimes } from './queue-times.ts'
import { type TroubleEvents, troubles } from './trouble-events.ts'

/** The last polls are kept this often: an operator does not need to know them better. */
export const lastPollsPeriodMs = 60_000

/** A shard with its index. */
interface Remembered {
  readonly shard: Pick<Shard, 'index' | 'clock'>
  readonly index: Pick<FleetIndex, 'isFilled' | 'row' | 'rows'>
}

export interface FleetMemoryOptions {
  readonly clock: Clock
  /** Undefined if nothing is kept. */
  readonly times: Pick<QueueTimes, 'read' | 'write'> | undefined
  readonly troubles: TroubleEvents
}

export class FleetMemory {
  readonly #options: FleetMemoryOptions
  #pollsKeptMs = 0

  constructor(options: FleetMemoryOptions) {
    this.#options = options
  }

  /** Reads what is kept of a shard whose index is about to be filled. */
  async recall({ shard, index }: Remembered, signal: AbortSignal): Promise<void> {
    const { clock, times, troubles: reported } = this.#options
    if (times === undefined) return
    const nowS = shard.clock.nowMs() / 1_000
    const polled = await times.read('last-polls', shard.index)
    if (signal.aborted) return
    for (const [queue, atS] of polled) {
      const row = index.row(queue)
      if (row !== undefined && atS <= nowS) row.polledAtS ??= atS
    }
    for (const trouble of troubles) {
      const told = await times.read(`reported-${trouble}`, shard.index)
      if (signal.aborted) return
      const nowMs = clock.monotonicMs()
      for (const [botId, atS] of told) {
        if (index.row(botId)?.isRegistered !== true) continue
        reported.restore({ trouble, botId, atMs: nowMs - (nowS - atS) * 1_000 }, nowMs)
      }
    }
  }

  /** Keeps what has changed. Called every few seconds. */
  async keep(shards: readonly Remembered[]): Promise<void> {
    const { clock, times, troubles: reported } = this.#options
    if (times === undefined) return
    const filled = shards.filter(({ index }) => index.isFilled)
    const changed = reported.takeReported()
    const nowMs = clock.monotonicMs()
    for (const { shard, index } of changed === undefined ? [] : filled) {
      const wallMs = shard.clock.nowMs()
      for (const trouble of troubles) {
        const told = changed?.filter((each) => each.trouble === trouble && index.row(each.botId))
        const entries = told?.map(
          ({ botId, atMs }) => [botId, Math.floor((wallMs - (nowMs - atMs)) / 1_000)] as const,
        )
        await times.write(`reported-${trouble}`, shard.index, entries ?? [])
      }
    }
    if (nowMs - this.#pollsKeptMs < lastPollsPeriodMs) return
    this.#pollsKeptMs = nowMs
    for (const { shard, index } of filled) {
      const polled: [QueueId, number][] = []
      for (const { queue, polledAtS } of index.rows) {
        if (polledAtS !== undefined) polled.push([queue, polledAtS])
      }
      await times.write('last-polls', shard.index, polled)
    }
  }
}
