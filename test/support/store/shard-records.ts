import { kinds } from '../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../src/shard/records/record-keys.ts'
import type { MemoryStore } from './memory-store.ts'
import type { PushOperation } from '../../../src/shard/operations.ts'
import { emptyQueueState, type QueueState } from '../../../src/shard/records/record.ts'
import type { StoredQueue } from '../../../src/shard/records/stored-records.ts'
import { FakeClock } from '../kit/fake-clock.ts'
import type { FaultyStore } from './faulty-store.ts'
import { ShardLife } from './shard-life.ts'

export const queue = queueIdOf(123, false)
export const waited = { waited: true }
export const bot = { firstName: 'A', username: 'a_bot', secrets: [], createdAtMs: 5 }

export function freshState(nextId = 1_000): QueueState {
  return emptyQueueState(nextId)
}

export function push(updateId: number, more: Partial<PushOperation> = {}): PushOperation {
  return {
    kind: 'push',
    queue,
    updateId,
    typeNumber: 0,
    acceptedAtS: 1_800_000_000,
    expiresAtS: 1_800_000_060,
    orderingKey: 'k',
    text: Buffer.from(`"message":{"n":${updateId}}`),
    ...more,
  }
}

/** A shard that tracks only the queue. */
export async function openShard<Kind extends MemoryStore | FaultyStore>(store: Kind) {
  const clock = new FakeClock()
  const life = new ShardLife(store, clock)
  await life.shard.open()
  life.shard.track(queue, freshState())
  return { clock, store, life, shard: life.shard }
}

export async function storedIds(store: MemoryStore | FaultyStore): Promise<number[]> {
  const entries = await store.range({
    gte: kinds.update.key(queue, 0),
    lt: kinds.update.key(queue, 2 ** 32 - 1),
    limit: 100_000,
    keysOnly: true,
  })
  return entries.map(({ key }) => key.readUInt32BE(13))
}

export async function reread(store: MemoryStore): Promise<StoredQueue> {
  const life = new ShardLife(store, new FakeClock())
  await life.shard.open()
  const [stored] = await life.shard.load([queue])
  await life.shard.close()
  return stored!
}
