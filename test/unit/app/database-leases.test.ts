import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { DatabaseLeases } from '../../../src/app/database-leases.ts'
import { SharedMemory } from '../../../src/cluster/shared-memory/shared-memory.ts'
import { databasesMax } from '../../../src/limits.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const boot = '00000000000000a1'

test('each database has a lease of its own, which its shards have, in all processes', async (t) => {
  const clock = new FakeClock()
  const path = join(temporaryDirectory(t), 'shared')
  const primary = SharedMemory.create({ path, workers: 1, shards: 32 })
  const memory = SharedMemory.attach(path)
  const leases = new DatabaseLeases({ databases: databasesMax, clock, memory })
  assert(!leases.isAnyValid())
  const last = databasesMax - 1
  primary.setLease(last, boot, clock.machineMs() + 1_000)
  assert(leases.isAnyValid())
  assert.deepEqual(leases.over(), [...Array(last).keys()])
  const valid = (): readonly number[] =>
    [...Array(32).keys()].filter((shard) => leases.ofShard(shard, boot).isValid())
  assert.deepEqual(valid(), [last, last + databasesMax])
  primary.setLease(0, boot, clock.machineMs() + 2_000)
  await clock.advance(1_000)
  assert.deepEqual(valid(), [0, databasesMax])
  // The tables after the leases begin where these end.
  assert.equal(memory.shardTable.owner(0), undefined)
})

test('what was opened in an earlier life of the node has no lease', (t) => {
  const clock = new FakeClock()
  const path = join(temporaryDirectory(t), 'shared')
  const memory = SharedMemory.create({ path, workers: 1, shards: 2 })
  const leases = new DatabaseLeases({ databases: 1, clock, memory })
  const validUntilMs = clock.machineMs() + 1_000
  memory.setLease(0, boot, validUntilMs)
  const before = leases.ofShard(1, boot)
  assert(before.isValid())
  const next = 'ffffffffffffffff'
  memory.setLease(0, next, validUntilMs)
  const after = leases.ofShard(1, next)
  assert.deepEqual([before.isValid(), after.isValid()], [false, true])
  memory.setLease(0, next, 0)
  assert(!after.isValid())
})

test('a server without a database may always serve', () => {
  const memory = { leaseMs: () => 0, leaseLife: () => 0n }
  const leases = new DatabaseLeases({ databases: 0, clock: new FakeClock(), memory })
  assert(!leases.isOver(3))
  assert(leases.isAnyValid())
  assert.deepEqual(leases.over(), [])
})
