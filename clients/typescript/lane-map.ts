/**
 * Which lane of a stream each bot has: one for each group of shards, so that the pairs of a bot go to the worker that has its shard.
 *
 *   slot = the first 12 bits of SHA-256 of the bot id in decimal; shard = slot mod shards (docs/inside/storage.md)
 */
import { createHash } from 'node:crypto'
import type { ServerConnection } from './server-connection.ts'

/** The part of ServerConnection that the requests of streams use. */
export type StreamConnection = Pick<
  ServerConnection,
  'requestOf' | 'streamClient' | 'unreachedMs' | 'withoutKey'
>

/** Where the requests of a lane go. */
export interface LanePlace {
  readonly connection: StreamConnection
  /** The shard that they name, for a worker that has it; undefined for any worker. */
  readonly shard: number | undefined
}

/** The shards of one node, in groups, one for each of its workers. */
export interface NodeGroups {
  readonly connection: StreamConnection
  /** The number of shards of the server: a power of two. */
  readonly shards: number
  readonly groups: readonly (readonly number[])[]
}

/** A stream has at most this many lanes with a shard; further groups share them. Chosen: more workers are rare. */
const lanesMax = 64
/** The places of this many bots are remembered, so that not each push computes a hash. Chosen: some MiB. */
const botsRememberedMax = 65_536

/** The lanes that some groups make. They never change: other groups make another map. */
export class LaneMap {
  /** The lane of the bots whose shard is in no group. */
  readonly #plain: LanePlace
  readonly #shards: number
  readonly #placeOfShard: LanePlace[] = []
  readonly #placeOfBot = new Map<number, LanePlace>()

  /**
   * Makes a lane for each group.
   *
   * @param connection - Where the lane goes that names no shard.
   * @param nodes - What the nodes have. All name the same number of shards.
   */
  constructor(connection: StreamConnection, nodes: readonly NodeGroups[]) {
    this.#plain = { connection, shard: undefined }
    this.#shards = nodes[0]?.shards ?? 1
    const all = nodes.flatMap((node) =>
      node.groups.map((group) => ({
        group,
        place: { connection: node.connection, shard: group[0] },
      })),
    )
    // The plain lane reaches the only worker as well.
    if (all.length === 1 && all[0]?.place.connection === connection) return
    for (const [nth, { group, place }] of all.entries()) {
      const { place: shared = place } = all[nth % lanesMax] ?? {}
      // While a shard moves, two nodes may name it.
      for (const shard of group) this.#placeOfShard[shard] ??= shared
    }
  }

  /** Returns where the pairs of a bot go: the same object for all bots of a lane. */
  placeOf(botId: number): LanePlace {
    if (this.#placeOfShard.length === 0) return this.#plain
    const known = this.#placeOfBot.get(botId)
    if (known !== undefined) return known
    const place = this.#placeOfShard[slotOf(botId) % this.#shards] ?? this.#plain
    if (this.#placeOfBot.size >= botsRememberedMax) this.#placeOfBot.clear()
    this.#placeOfBot.set(botId, place)
    return place
  }
}

function slotOf(botId: number): number {
  return createHash('sha256').update(String(botId)).digest().readUInt16BE(0) >> 4
}
