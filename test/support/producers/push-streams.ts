/**
 * The streams of one producer: one for each group of shards, with a hint, and one without for the shards of no group. Without
 * groups it is a single stream. A bot's pairs go to one of them, so they keep their order, also if the groups are old or wrong.
 */
import { send, type Server } from '../server/server.ts'
import { RawPushStream } from './raw-push-stream.ts'
import { crossedGroups, groupOfBot, type ShardGroups } from './shard-groups.ts'

type Target = Pick<Server, 'privateUrl' | 'key'>

/** Returns the groups for the next streams of a producer; undefined if they have no hints. */
export type Hints = (server: Target) => Promise<ShardGroups | undefined>

export const noHints: Hints = async () => undefined

/** A producer goes on without hints if it has to wait for them longer. */
const hintsMsMax = 2_000

/** What the server says now; nothing if it does not answer. */
export const freshHints: Hints = async ({ privateUrl, key }) => {
  const headers = { authorization: `Bearer ${key}` }
  const signal = AbortSignal.timeout(hintsMsMax)
  const call = { method: 'GET', url: `${privateUrl}/v1/shards`, headers, signal }
  const answer = await send(call).catch(() => undefined)
  return answer?.status === 200 ? answer.body : undefined
}

/** Most of them are wrong, and they stay as they were at first, whatever moves. */
export function staleHints(): Hints {
  let first: ShardGroups | undefined
  return async (server) => {
    first ??= await freshHints(server)
    return first && crossedGroups(first)
  }
}

const noGroups: ShardGroups = { shards: 1, groups: [] }

export class PushStreams {
  readonly #groups: ShardGroups
  readonly all: readonly RawPushStream[]
  /** Resolves when one of them has ended, so that all should be opened anew. */
  readonly ended: Promise<unknown>

  constructor(server: Target, map: ShardGroups = noGroups) {
    const { shards, groups } = map
    this.#groups = map
    const lists = groups.flat().length < shards ? [...groups, []] : groups
    this.all = lists.map(([shard]) => new RawPushStream(server, { shard }))
    this.ended = Promise.race(this.all.map((stream) => stream.ended))
  }

  /** Returns the stream for a bot's pairs: the last one if its shard is in no group. */
  of(botId: number): RawPushStream {
    const stream = this.all.at(groupOfBot(this.#groups, botId))
    if (stream === undefined) throw new Error('no stream')
    return stream
  }

  /** Sends no more pairs; resolves when all results have arrived, with true if all responses have ended correctly. */
  async end(): Promise<boolean> {
    const ended = await Promise.all(this.all.map((stream) => stream.end()))
    return ended.every(Boolean)
  }

  destroy(): void {
    for (const stream of this.all) stream.destroy()
  }
}
