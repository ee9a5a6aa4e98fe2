/** Where producers send the pairs of each bot if they use hints: to the worker that has its shard, as `GET /v1/shards` tells. */
import { slotOfBot } from '../src/process/shard-map.ts'
import type { ShardGroups } from '../test/support/producers/shard-groups.ts'
import type { ServerUnderTest } from './server-under-test.ts'

/** What the streams to one worker take. */
export interface StreamGroup {
  readonly port: number
  /** The shards of the worker, of so many. */
  readonly own: readonly number[]
  readonly shards: number
}

/** Asks each node for its groups. */
export async function streamGroups(nodes: readonly ServerUnderTest[]): Promise<StreamGroup[]> {
  const ofNodes = await Promise.all(
    nodes.map(async (node) => {
      const { shards, groups } = await node.private<ShardGroups>('GET', '/v1/shards')
      return groups.map((own) => ({ port: node.privatePort, own, shards }))
    }),
  )
  return ofNodes.flat()
}

export function isOfGroup({ own, shards }: StreamGroup, botId: number): boolean {
  return own.includes(slotOfBot(botId) % shards)
}

/** Returns the target of a stream with the group's hint. */
export function hintedPath({ own }: StreamGroup): string {
  return `/v1/updates?shard=${own[0]}`
}
