import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseClocks } from '../../../src/app/database-clocks.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

test('each shard has the time of its own database, which no change of the clock of this machine moves', async () => {
  const clock = new FakeClock()
  const offsets = [1_700_000_000_000, 1_900_000_000_000]
  const clocks = new DatabaseClocks({
    databases: 2,
    clock,
    memory: { clockOffsetMs: (database) => offsets[database] ?? 0 },
  })
  const times = (): number[] =>
    [0, 1, 2].map((shard) => clocks.ofShard(shard).nowMs() - clock.machineMs())
  const expected = [offsets[0], offsets[1], offsets[0]]
  assert.deepEqual(times(), expected)
  clock.jump(600_000)
  await clock.advance(1_000)
  assert.deepEqual(times(), expected)
})

test('without a database, or before its first heartbeat, a shard has the clock of this machine', () => {
  const clock = new FakeClock()
  const memory = { clockOffsetMs: () => 0 }
  for (const databases of [0, 1]) {
    const clocks = new DatabaseClocks({ databases, clock, memory })
    assert.equal(clocks.ofShard(3).nowMs(), clock.nowMs())
  }
  assert.equal(new DatabaseClocks({ databases: 0, clock, memory }).ofShard(3), clock)
})
