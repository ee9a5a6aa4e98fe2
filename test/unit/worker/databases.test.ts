import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Databases, type DatabasesOptions } from '../../../src/worker/databases.ts'
import { SharedMemory } from '../../../src/process/shared-memory/shared-memory.ts'
import { databasesMax } from '../../../src/kit/limits.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const boot = '00000000000000a1'
const nothing: DatabasesOptions['memory'] = {
  leaseMs: () => 0,
  leaseLife: () => 0n,
  clockOffsetMs: () => 0,
  clockSkewMs: () => 0,
}

test('each database has a lease of its own, which its shards have, in all processes', async (t) => {
  const clock = new FakeClock()
  const path = join(temporaryDirectory(t), 'shared')
  const primary = SharedMemory.create({ path, workers: 1, shards: 32 })
  const memory = SharedMemory.attach(path)
  const all = new Databases({ databases: databasesMax, clock, memory })
  assert(!all.isAnyOn())
  const last = databasesMax - 1
  primary.setLease(last, boot, clock.machineMs() + 1_000)
  assert(all.isAnyOn())
  assert.deepEqual(all.away(), [...Array(last).keys()])
  const valid = (): readonly number[] =>
    [...Array(32).keys()].filter((shard) => all.leaseOf(shard, boot).isValid())
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
  const all = new Databases({ databases: 1, clock, memory })
  const validUntilMs = clock.machineMs() + 1_000
  memory.setLease(0, boot, validUntilMs)
  const before = all.leaseOf(1, boot)
  assert(before.isValid())
  const next = 'ffffffffffffffff'
  memory.setLease(0, next, validUntilMs)
  const after = all.leaseOf(1, next)
  assert.deepEqual([before.isValid(), after.isValid()], [false, true])
  memory.setLease(0, next, 0)
  assert(!after.isValid())
})

test('a server without a database may always serve', () => {
  const all = new Databases({ databases: 0, clock: new FakeClock(), memory: nothing })
  assert(!all.isAway(3))
  assert(all.isAnyOn())
  assert.deepEqual(all.away(), [])
})

test('each shard has the time of its own database, which no change of the clock of this machine moves', async () => {
  const clock = new FakeClock()
  const offsets = [1_700_000_000_000, 1_900_000_000_000]
  const all = new Databases({
    databases: 2,
    clock,
    memory: { ...nothing, clockOffsetMs: (database) => offsets[database] ?? 0 },
  })
  const times = (): number[] =>
    [0, 1, 2].map((shard) => all.clockOf(shard).nowMs() - clock.machineMs())
  const expected = [offsets[0], offsets[1], offsets[0]]
  assert.deepEqual(times(), expected)
  clock.jump(600_000)
  await clock.advance(1_000)
  assert.deepEqual(times(), expected)
})

test('without a database, or before its first heartbeat, a shard has the clock of this machine', () => {
  const clock = new FakeClock()
  for (const databases of [0, 1]) {
    const all = new Databases({ databases, clock, memory: nothing })
    assert.equal(all.clockOf(3).nowMs(), clock.nowMs())
  }
  assert.equal(new Databases({ databases: 0, clock, memory: nothing }).clockOf(3), clock)
})
