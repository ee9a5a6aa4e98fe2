/** Which worker has which shard, as `GET /v1/shards` tells producers, and to which of its groups a bot belongs. */
import { slotOfBot } from '../../../src/process/shard-map.ts'

/** What the call returns. */
export interface ShardGroups {
  readonly shards: number
  /** The shards of each worker of the node that has any. */
  readonly groups: readonly (readonly number[])[]
}

/** Returns the place of a bot's group, or -1 if this node has not its shard. */
export function groupOfBot({ shards, groups }: ShardGroups, botId: number): number {
  const shard = slotOfBot(botId) % shards
  return groups.findIndex((group) => group.includes(shard))
}

/** Returns other groups of the same shards, of which each has one of a worker and the rest of the next one: most hints are wrong. */
export function crossedGroups({ shards, groups }: ShardGroups): ShardGroups {
  const crossed = groups.map((group, nth) => {
    const next = groups[(nth + 1) % groups.length] ?? []
    return [...group.slice(0, 1), ...next.slice(1)]
  })
  return { shards, groups: crossed }
}
