/** Bots by the worker that owns them, of a server with two workers and the eight shards it has by itself. */
import { ShardMap } from '../../src/cluster/shard-map.ts'

export const map = new ShardMap({ shards: 8, workers: 2 })

/** A bot that this worker owns. */
export function botOf(worker: number, nth = 0): number {
  let left = nth
  for (let botId = 100; ; botId++) {
    if (map.workerOfBot(botId) === worker && left-- === 0) return botId
  }
}

let freshBots = 1_000

/** The same, and no other test of this file has it. */
export function freshBotOf(worker: number): number {
  return botOf(worker, freshBots++)
}
