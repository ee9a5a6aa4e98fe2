import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { type TestContext, test } from 'node:test'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { AccessKeyRing } from '../../../../src/access/access-key-ring.ts'
import { addShardRoutes, recordStreamsMax } from '../../../../src/features/backup/shard-routes.ts'
import { addRequestAccess } from '../../../../src/access/request-access.ts'
import type { RecordStream } from '../../../../src/features/backup/record-stream.ts'
import { SectionCheck } from '../../../../src/features/backup/backup-check.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { StoreSnapshot } from '../../../../src/store/store.ts'
import { waitingClock } from '../../../../src/kit/clock.ts'
import { openShard, push, waited } from '../../../support/store/shard-records.ts'
import { framesIn } from '../../../support/store/small-backup.ts'

/** Counts the snapshots that are open. */
class CountingStore extends MemoryStore {
  snapshots = 0

  override async snapshot(): Promise<StoreSnapshot> {
    const snapshot = await super.snapshot()
    this.snapshots += 1
    return {
      next: () => snapshot.next(),
      close: () => {
        this.snapshots -= 1
        return snapshot.close()
      },
    }
  }
}

async function setUp(t: TestContext, groups: (readonly number[])[] = []) {
  const { shard, store } = await openShard(new CountingStore())
  const lease = { isValid: () => true }
  const leased = Object.defineProperty(shard, 'lease', { value: lease })
  const recordStreams = new Set<RecordStream>()
  const app = Fastify()
  addRequestAccess(app)
  app.addHook('onRequest', async (request) => {
    request.access = 'root'
  })
  addShardRoutes(app, {
    keys: { ring: new AccessKeyRing(waitingClock) },
    clock: waitingClock,
    shards: 8,
    routes: { groups: () => groups },
    checkShard: async () => undefined,
    shardAt(index) {
      if (index !== 3) throw new PostboteError('SHARD_BROKEN')
      return leased
    },
    recordStreams,
  })
  t.after(() => app.close())
  const get = (path: string) => app.inject({ method: 'GET', url: `/v1/shards/${path}/records` })
  const list = async () => (await app.inject({ method: 'GET', url: '/v1/shards' })).json()
  return { shard, store, lease, recordStreams, get, list }
}

test('the shards of the node are listed by its workers, with another version whenever that changes', async (t) => {
  const groups = [[0, 1], [4]]
  const { list } = await setUp(t, groups)
  const { version, ...before } = await list()
  assert.deepEqual(before, { shards: 8, groups })
  assert(Number.isSafeInteger(version))
  assert.equal((await list()).version, version)
  const versions = new Set([version])
  for (const changed of [[[0], [1, 4]], [[0, 1, 4]], [[0, 1]], [[0, 1], [5]], []]) {
    groups.splice(0, Infinity, ...changed)
    versions.add((await list()).version)
  }
  assert.equal(versions.size, 6)
})

test('a shard is sent whole, and its snapshot is closed', async (t) => {
  const { shard, store, recordStreams, get } = await setUp(t)
  await shard.commit([push(1_000)], waited)
  const { statusCode, headers, rawPayload } = await get('3')
  assert.deepEqual([statusCode, headers['content-type']], [200, 'application/octet-stream'])
  const check = new SectionCheck()
  for (const frame of framesIn(rawPayload)) check.take(frame)
  assert.deepEqual([check.isComplete, check.head?.shard, check.head?.shards], [true, 3, 8])
  assert(check.records > 0)
  assert.deepEqual([store.snapshots, recordStreams.size], [0, 0])
})

test('nothing is sent without a lease, because another node may have acknowledged more', async (t) => {
  const { store, lease, get } = await setUp(t)
  // It ends while the snapshot is taken.
  lease.isValid = () => store.snapshots === 0
  const { statusCode, json } = await get('3')
  assert.deepEqual([statusCode, json().code], [503, 'STORE_UNAVAILABLE'])
  assert.equal(store.snapshots, 0)
})

test('a shard that is set aside, that does not exist, or that too many read, is refused', async (t) => {
  const { recordStreams, get, store } = await setUp(t)
  const code = async (path: string): Promise<unknown> => (await get(path)).json().code
  assert.equal(await code('4'), 'SHARD_BROKEN')
  for (const path of ['8', '-1', 'x']) assert.equal(await code(path), 'BAD_REQUEST')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- they are only counted
  for (let at = 0; at < recordStreamsMax; at++) recordStreams.add({} as RecordStream)
  assert.equal(await code('3'), 'TOO_MANY_REQUESTS')
  assert.equal(store.snapshots, 0)
})
