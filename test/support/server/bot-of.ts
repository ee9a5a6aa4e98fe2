/** Bots by their owning worker, for a server with two workers and the default of eight shards. */
import { ShardMap } from '../../../src/process/shard-map.ts'
import type { Server } from './server.ts'

export const map = new ShardMap({ shards: 8, workers: 2 })

/** Returns a bot that this worker owns. */
export function botOf(worker: number, nth = 0): number {
  let left = nth
  for (let botId = 100; ; botId++) {
    if (map.workerOfBot(botId) === worker && left-- === 0) return botId
  }
}

let freshBots = 1_000

/** Returns a bot that this worker owns and that no other test of this file uses. */
export function freshBotOf(worker: number): number {
  return botOf(worker, freshBots++)
}

/** Registers two bots, one of each worker. */
export async function registerBots(server: Server): Promise<readonly [number, number]> {
  const [first, second] = [freshBotOf(0), freshBotOf(1)]
  await server.register(first)
  await server.register(second)
  return [first, second]
}
