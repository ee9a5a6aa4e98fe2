import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FleetIndex } from '../../../../src/features/fleet/fleet-index.ts'
import type {
  AdvanceOperation,
  DeleteOperation,
  Operation,
} from '../../../../src/shard/operations.ts'
import type { QueueState } from '../../../../src/shard/records/record.ts'
import { bot, freshState, push, queue } from '../../../support/store/shard-records.ts'

/** The state of the queue with updates from `floor` on. */
function stateOf(floor: number, liveCount: number): QueueState {
  return { ...freshState(floor + liveCount), floor, liveCount, liveBytes: liveCount * 10 }
}

function confirm(floor: number): AdvanceOperation {
  return { kind: 'confirm', queue, from: 0, floor, removedCount: 1, removedBytes: 10 }
}

function deliver(updateIds: readonly number[], floor: number): DeleteOperation {
  return { kind: 'delete', queue, updateIds, removedBytes: 10, floor }
}

/** A filled index with three updates from 1000 on, whose oldest is not known. */
function threeStored(): FleetIndex {
  const index = new FleetIndex()
  index.fill('s', [{ queue, record: stateOf(1_000, 3) }])
  index.filled()
  return index
}

function commit(index: FleetIndex, state: QueueState, ...operations: Operation[]): void {
  index.committed(operations, () => state)
}

test('the oldest update of a queue that was empty is known without a read', () => {
  const index = new FleetIndex()
  index.filled()
  const operations = [push(1_000, { acceptedAtS: 5 }), push(1_001, { acceptedAtS: 6 })]
  commit(index, stateOf(1_000, 2), ...operations)
  assert.deepEqual(index.takeDueOldest(9), [])
  assert.equal(index.row(queue)?.oldestAtS, 5)
  assert.equal(index.row(queue)?.pendingCount, 2)
  commit(index, stateOf(1_002, 0), confirm(1_002))
  assert.equal(index.row(queue), undefined, 'a queue with nothing to tell has no row')
})

test('the next oldest update is due when the oldest has left, alone or with all before it', () => {
  for (const operation of [confirm(1_001), deliver([1_000], 1_000)]) {
    const index = threeStored()
    assert.deepEqual(index.takeDueOldest(9), [{ queue, floor: 1_000 }])
    index.oldestIs(queue, { updateId: 1_000, acceptedAtS: 5 })
    assert.equal(index.row(queue)?.oldestAtS, 5)
    commit(index, stateOf(operation.floor, 3), push(1_003))
    commit(index, stateOf(operation.floor, 3), deliver([1_002], 1_000))
    assert.deepEqual(index.takeDueOldest(9), [], 'another one has left')
    commit(index, stateOf(operation.floor, 2), operation)
    assert.deepEqual(index.takeDueOldest(9), [{ queue, floor: operation.floor }])
  }
})

test('an oldest update that left while it was read is read again', () => {
  const index = threeStored()
  index.takeDueOldest(9)
  commit(index, stateOf(1_000, 2), deliver([1_000], 1_000))
  index.oldestIs(queue, { updateId: 1_000, acceptedAtS: 5 })
  assert.deepEqual(index.takeDueOldest(9), [{ queue, floor: 1_000 }])
  index.oldestIs(queue, { updateId: 1_001, acceptedAtS: 6 })
  assert.equal(index.row(queue)?.oldestAtS, 6)
})

test('a read that ends after the queue was emptied and filled again changes nothing', () => {
  const index = threeStored()
  index.takeDueOldest(9)
  commit(index, stateOf(1_003, 0), confirm(1_003))
  index.oldestIs(queue, { updateId: 1_000, acceptedAtS: 5 })
  assert.equal(index.row(queue), undefined)
  commit(index, stateOf(1_003, 1), push(1_003, { acceptedAtS: 9 }))
  index.oldestIs(queue, { updateId: 1_000, acceptedAtS: 5 })
  assert.equal(index.row(queue)?.oldestAtS, 9)
})

test('what could not be read stays due', () => {
  const index = threeStored()
  index.takeDueOldest(9)
  index.oldestUnread(queue)
  assert.equal(index.takeDueOldest(9).length, 1)
  commit(index, stateOf(1_000, 3), { kind: 'removeDeadLetters', queue, updateIds: [1] })
  assert.deepEqual(index.takeDueDeadLetters(9), [queue])
  assert.deepEqual(index.takeDueDeadLetters(9), [])
  index.deadLettersUncounted(queue)
  assert.deepEqual(index.takeDueDeadLetters(9), [queue])
  index.deadLettersAre(queue, 4)
  assert.equal(index.row(queue)?.deadLetters, 4)
})

test('a queue that was emptied while its oldest could not be read is not due', () => {
  const index = threeStored()
  commit(index, stateOf(1_000, 3), { kind: 'bot', queue, record: bot })
  assert.equal(index.takeDueOldest(9).length, 1)
  commit(index, stateOf(1_003, 0), confirm(1_003))
  index.oldestUnread(queue)
  assert.equal(index.row(queue)?.pendingCount, 0)
  assert.deepEqual(index.takeDueOldest(9), [])
})

test('the oldest update of a queue that was empty is due if its group takes out the first one, too', () => {
  for (const gone of [confirm(1_001), deliver([1_000], 1_001)]) {
    const index = new FleetIndex()
    index.filled()
    const pushed = [push(1_000, { acceptedAtS: 5 }), push(1_001, { acceptedAtS: 6 })]
    commit(index, stateOf(1_001, 1), ...pushed, gone)
    assert.equal(index.row(queue)?.oldestAtS, undefined, gone.kind)
    assert.deepEqual(index.takeDueOldest(9), [{ queue, floor: 1_001 }], gone.kind)
  }
})

test('the oldest update has left, whichever others leave in the same group', () => {
  const one = deliver([1_000], 1_000)
  const other = deliver([1_002], 1_000)
  for (const group of [
    [one, other],
    [other, one],
  ]) {
    const index = threeStored()
    index.takeDueOldest(9)
    index.oldestIs(queue, { updateId: 1_000, acceptedAtS: 5 })
    commit(index, stateOf(1_000, 1), ...group)
    assert.deepEqual(index.takeDueOldest(9), [{ queue, floor: 1_000 }])
  }
})

test('at most as many are due at a time as the caller wants', () => {
  const index = new FleetIndex()
  const records = [1, 2, 3].map((id) => ({ queue: id, record: stateOf(1_000, 1) }))
  index.fill('s', records)
  index.filled()
  assert.equal(index.takeDueOldest(2).length, 2)
  assert.equal(index.takeDueOldest(2).length, 1)
})

test('every queue that is due gets its turn, also while others become due again', () => {
  const index = new FleetIndex()
  const records = [1, 2, 3, 4].map((id) => ({ queue: id, record: stateOf(1_000, 1) }))
  index.fill('s', records)
  index.filled()
  const taken: number[] = []
  for (let round = 0; round < 4; round++) {
    const [due] = index.takeDueOldest(1)
    taken.push(due!.queue)
    index.oldestUnread(1)
  }
  assert.deepEqual(taken, [1, 2, 3, 4])
  assert.deepEqual(index.takeDueOldest(9), [{ queue: 1, floor: 1_000 }])
})

test('a stored record that a commit has changed in the meantime is outdated', () => {
  const index = new FleetIndex()
  commit(index, stateOf(1_005, 1), push(1_005, { acceptedAtS: 7 }))
  commit(index, stateOf(1_005, 1), { kind: 'bot', queue, record: null })
  commit(index, stateOf(1_005, 1), { kind: 'settings', queue, record: { isPaused: true } })
  index.fill('s', [{ queue, record: stateOf(1_000, 5) }])
  index.fill('b', [{ queue, record: bot }])
  index.fill('w', [{ queue, record: {} }])
  index.filled()
  const { username, pendingCount, isPaused } = index.row(queue)!
  assert.deepEqual([username, pendingCount, isPaused], [undefined, 1, true])
  // Whether updates were pending before the first commit was not known, so the oldest must be read.
  assert.equal(index.takeDueOldest(9).length, 1)
})
