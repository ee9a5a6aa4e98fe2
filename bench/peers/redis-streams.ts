/**
 * Redis Streams: a stream with a consumer group for each queue. A push is a pipeline of XADD over one of several
 * connections, because Redis syncs once for all that it has read of all connections. A reader asks for the next events of
 * many streams at once, and confirms with XACK and XDEL in one pipeline.
 */
import type { EventSink, Peer, PeerAddress, PushedEvent } from './peer.ts'
import { type Redis, redisClient, startRedis } from './redis-server.ts'

const lanes = 32
const readers = 10
const group = 'consumers'
const eventsPerReadMax = 100
const blockMs = 60_000

export const redisStreams: Peer = {
  lanes,
  batchMax: 100,
  async start(context, queues) {
    const server = await startRedis(context)
    const redis = redisClient(server.address)
    const pipeline = redis.pipeline()
    for (let queue = 0; queue < queues; queue++) {
      pipeline.call('XGROUP', 'CREATE', streamOf(queue), group, '0', 'MKSTREAM')
    }
    await executed(pipeline.exec())
    await redis.call('QUIT')
    return server
  },
  async connect(address) {
    const connections = Array.from({ length: lanes }, () => redisClient(address))
    return {
      push: async (lane, events) => {
        const redis = connections[lane]
        if (redis !== undefined) await add(redis, events)
      },
    }
  },
  async consume(address, queues, sink) {
    for (let reader = 0; reader < readers; reader++) {
      const streams = Array.from({ length: queues }, (_, queue) => queue)
        .filter((queue) => queue % readers === reader)
        .map(streamOf)
      void read(address, streams, sink)
    }
  },
}

function streamOf(queue: number): string {
  return `queue:${queue}`
}

async function add(redis: Redis, events: readonly PushedEvent[]): Promise<void> {
  const pipeline = redis.pipeline()
  for (const { queue, event } of events) {
    pipeline.call('XADD', streamOf(queue), '*', 'event', JSON.stringify(event))
  }
  await executed(pipeline.exec())
}

async function executed(results: ReturnType<ReturnType<Redis['pipeline']>['exec']>): Promise<void> {
  for (const [error] of (await results) ?? []) if (error !== null) throw error
}

/** The map of streams to entries as a list in which they take turns. */
type Read = readonly (string | Entries)[]
type Entries = readonly (readonly [id: string, fields: readonly string[]])[]

async function read(
  address: PeerAddress,
  streams: readonly string[],
  sink: EventSink,
): Promise<void> {
  const blocking = redisClient(address)
  const confirming = redisClient(address)
  const question = [
    'GROUP',
    group,
    'reader',
    'COUNT',
    eventsPerReadMax,
    'BLOCK',
    blockMs,
    'STREAMS',
  ]
  const newest = streams.map(() => '>')
  for (;;) {
    // oxlint-disable-next-line no-unsafe-type-assertion -- the response of XREADGROUP
    const found = (await blocking.call(
      'XREADGROUP',
      ...question,
      ...streams,
      ...newest,
    )) as Read | null
    if (found !== null) await confirm(confirming, found, sink)
  }
}

async function confirm(redis: Redis, found: Read, sink: EventSink): Promise<void> {
  const pipeline = redis.pipeline()
  let count = 0
  for (let index = 0; index < found.length; index += 2) {
    const [stream, entries] = [found[index], found[index + 1]]
    if (typeof stream !== 'string' || typeof entries !== 'object') continue
    for (const [, [, text = '']] of entries) sink.arrived(JSON.parse(text))
    const ids = entries.map(([id]) => id)
    pipeline.call('XACK', stream, group, ...ids)
    pipeline.call('XDEL', stream, ...ids)
    count += ids.length
  }
  await executed(pipeline.exec())
  sink.confirmed(count)
}
