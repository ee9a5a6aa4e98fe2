import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PlaceState } from '../../../../src/process/primary/place-state.ts'
import type { WorkerRecord } from '../../../../src/process/shard-table.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

test('every change of a place is recorded, and every start but the first is a restart', async () => {
  const clock = new FakeClock()
  const records: WorkerRecord[] = []
  const shardTable = {
    noteWorker(worker: number, record: WorkerRecord): void {
      assert.equal(worker, 3)
      records.push(record)
    },
  }
  const state = new PlaceState(3, clock, shardTable)
  const [first, second, successor] = [1, 2, 3].map((generation) => ({
    pid: 100 + generation,
    generation,
  }))
  state.to('starting', first)
  await clock.advance(2_000)
  state.to('serving', first)
  const servingSinceS = Math.floor(clock.machineMs() / 1_000)
  state.to('empty', first)
  state.to('waiting', first)
  state.to('starting', second)
  await clock.advance(5_000)
  state.to('serving', second)
  state.to('serving', successor)
  state.to('stopped', successor)
  assert.equal(state.isStopped, true)
  assert.throws(() => state.to('serving', first), /from stopped to serving/)
  const later = servingSinceS + 5
  assert.deepEqual(
    records.map((each) => Object.values(each)),
    [
      ['starting', 101, 1, 0, 0],
      ['serving', 101, 1, 0, servingSinceS],
      ['down', 0, 1, 0, 0],
      ['down', 0, 1, 0, 0],
      ['starting', 102, 2, 1, 0],
      ['serving', 102, 2, 1, later],
      ['serving', 103, 3, 1, later],
      ['ending', 103, 3, 1, 0],
    ],
  )
})
