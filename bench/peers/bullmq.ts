/**
 * BullMQ on a Redis that syncs its log before each response: a queue and a worker with concurrency 1 for each queue,
 * because only that keeps an order. A push is an `addBulk` for each of its queues, all in flight at the same time.
 */
import type { Peer, PeerEvent, PushedEvent } from './peer.ts'
import { peerModule } from './peer-module.ts'
import { type RedisPlace, type Redis, redisClient, startRedis } from './redis-server.ts'

const lanes = 4

/** The parts of BullMQ that are used. */
interface Job {
  readonly data: PeerEvent
}
interface NewJob {
  readonly name: string
  readonly data: object
  readonly opts: object
}
interface Queue {
  addBulk(jobs: readonly NewJob[]): Promise<unknown>
}
interface Worker {
  on(event: 'completed', listener: () => void): void
  waitUntilReady(): Promise<unknown>
}
export interface BullModule<Data = PeerEvent> {
  readonly Queue: new (name: string, options: { readonly connection: Redis | RedisPlace }) => Queue
  readonly Worker: new (
    name: string,
    work: (job: { readonly data: Data }) => Promise<void>,
    options: { readonly connection: Redis | RedisPlace; readonly concurrency: number },
  ) => Worker
}

export const jobOptions = { removeOnComplete: true }

export const bullmq: Peer = {
  lanes,
  batchMax: 2_000,
  waitingMax: 4_000,
  start: startRedis,
  async connect(address, queues) {
    const { Queue } = peerModule<BullModule>('bullmq')
    const connections = Array.from({ length: lanes }, () => redisClient(address))
    const opened = Array.from({ length: queues }, (_, queue) => {
      const connection = connections[queue % lanes] ?? redisClient(address)
      return new Queue(nameOf(queue), { connection })
    })
    return {
      push: async (_lane, events) => {
        const adding = [...jobsByQueue(events)].flatMap(
          ([queue, jobs]) => opened[queue]?.addBulk(jobs) ?? [],
        )
        await Promise.all(adding)
      },
    }
  },
  async consume(address, queues, sink) {
    const { Worker } = peerModule<BullModule>('bullmq')
    const connection = redisClient(address)
    const work = async ({ data }: Job): Promise<void> => sink.arrived(data)
    for (let queue = 0; queue < queues; queue++) {
      const worker = new Worker(nameOf(queue), work, { connection, concurrency: 1 })
      worker.on('completed', () => sink.confirmed(1))
      await worker.waitUntilReady()
    }
  },
}

function nameOf(queue: number): string {
  return `queue-${queue}`
}

function jobsByQueue(events: readonly PushedEvent[]): ReadonlyMap<number, readonly NewJob[]> {
  const byQueue = new Map<number, NewJob[]>()
  for (const { queue, event } of events) {
    const jobs = byQueue.get(queue) ?? []
    jobs.push({ name: 'event', data: event, opts: jobOptions })
    byQueue.set(queue, jobs)
  }
  return byQueue
}
