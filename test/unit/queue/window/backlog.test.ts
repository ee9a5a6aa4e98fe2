import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backlog, queueWindowBytesMax } from '../../../../src/queue/window/backlog.ts'
import { WindowBudget } from '../../../../src/queue/window/window.ts'
import { freshState, push } from '../../../support/store/shard-records.ts'

const textBytes = push(1_000).text.length

/** The backlog of a queue with `stored` updates on disk, none of them loaded. */
function backlogOf(stored: number, bytesMax = 1_000_000) {
  const budget = new WindowBudget(bytesMax)
  const state = {
    ...freshState(1_000),
    nextId: 1_000 + stored,
    liveCount: stored,
    liveBytes: stored * textBytes,
  }
  return { backlog: new Backlog(state, budget), budget }
}

/** Whether a dispatcher holds an update: one with an even id. */
function isHeldBySome({ updateId }: { readonly updateId: number }): boolean {
  return updateId % 2 === 0
}

function idsOf(backlog: Backlog): number[] {
  return backlog.after(0, 1_000).map((entry) => entry.updateId)
}

test('a new update may be kept only if all before it are loaded and there is room', () => {
  const whole = backlogOf(0)
  assert.equal(whole.backlog.add(push(1_000)), true)
  whole.backlog.keep(push(1_000))
  assert.deepEqual(idsOf(whole.backlog), [1_000])
  const deep = backlogOf(3)
  assert.equal(deep.backlog.add(push(1_003)), false)
  assert.equal(deep.backlog.liveCount, 4)
  assert.equal(deep.backlog.isLoaded, false)
  const spent = backlogOf(0, 0)
  assert.equal(spent.backlog.add(push(1_000)), false)
  assert.equal(spent.backlog.liveCount, 1)
})

test('updates that were read twice, or have left in between, are not loaded', () => {
  const { backlog } = backlogOf(4)
  const updates = [1_000, 1_001, 1_002].map((id) => push(id))
  backlog.load({ updates: updates.slice(0, 2), next: 1_002 })
  backlog.load({ updates, next: 1_003 })
  assert.deepEqual(idsOf(backlog), [1_000, 1_001, 1_002])
  backlog.advance(1_004)
  backlog.load({ updates: [push(1_003)], next: 1_004 })
  assert.deepEqual(idsOf(backlog), [])
  assert.equal(backlog.liveCount, 0)
})

test('an advance counts what is loaded, what the disk reports, and at the end all that is left', () => {
  const { backlog, budget } = backlogOf(6)
  backlog.load({ updates: [push(1_000), push(1_001)], next: 1_002 })
  assert.equal(backlog.isBeyondWindow(1_003), true)
  assert.deepEqual(
    backlog.advance(1_003, {
      count: 1,
      bytes: textBytes,
      stored: [{ storedAtMs: 9_000, count: 1 }],
    }),
    {
      from: 1_000,
      floor: 1_003,
      removedCount: 3,
      removedBytes: 3 * textBytes,
      stored: [
        { storedAtMs: 1_800_000_000_000, count: 2 },
        { storedAtMs: 9_000, count: 1 },
      ],
      unreadFrom: 1_002,
    },
  )
  assert.equal(budget.usedBytes, 0)
  assert.equal(backlog.isBeyondWindow(9_999), false)
  assert.deepEqual(backlog.advance(9_999), {
    from: 1_003,
    floor: 1_006,
    removedCount: 3,
    removedBytes: 3 * textBytes,
    stored: [],
    unreadFrom: 1_003,
  })
  assert.equal(backlog.advance(9_999), undefined)
  assert.equal(backlog.liveBytes, 0)
})

test('an unloaded window returns its budget and is read again from the oldest pending update', () => {
  const { backlog, budget } = backlogOf(3)
  backlog.load({ updates: [push(1_000), push(1_001), push(1_002)], next: 1_003 })
  const first = backlog.first()
  assert(first !== undefined)
  backlog.remove([first])
  assert(budget.usedBytes > 0)
  backlog.unload(isHeldBySome)
  assert.equal(budget.usedBytes, 0)
  assert.equal(backlog.loadedTo, 1_001)
  assert.equal(backlog.liveCount, 2)
})

test('a detached backlog loads nothing from a read that was in progress', () => {
  const { backlog, budget } = backlogOf(2)
  backlog.detach()
  backlog.load({ updates: [push(1_000), push(1_001)], next: 1_002 })
  assert.equal(backlog.loadedCount, 0)
  assert.equal(budget.usedBytes, 0)
  assert.equal(backlog.isLoaded, true)
})

test('small updates that stay between large ones that leave do not keep more memory than a window may have', () => {
  const { backlog, budget } = backlogOf(0, 1e9)
  const large = Buffer.from(`"message":{"t":"${'x'.repeat(30_000)}"}`)
  for (let id = 1_000; id < 3_000; id++) {
    const update = id % 3 === 0 ? push(id) : push(id, { text: large })
    if (backlog.add(update)) backlog.keep(update)
    if (id % 3 !== 0) backlog.remove([{ updateId: id }])
  }
  const chunks = new Set(backlog.after(0, 1_000).map(({ chunk }) => chunk))
  const heldBytes = [...chunks].reduce((sum, { length }) => sum + length, 0)
  assert(heldBytes < queueWindowBytesMax * 1.1, `${heldBytes} bytes`)
  assert(heldBytes < budget.usedBytes * 1.1, `${budget.usedBytes} bytes are counted`)
  assert.equal(backlog.isLoaded, false)
  backlog.jump(isHeldBySome)
  assert.equal(budget.usedBytes, 0)
})

test('updates that a dispatcher holds when the window is cleared keep only their own bytes in memory', () => {
  const { backlog } = backlogOf(0)
  for (let id = 1_000; id < 1_004; id++) {
    backlog.add(push(id))
    backlog.keep(push(id))
  }
  const entries = backlog.after(0, 10)
  const bodies = entries.map((entry) => entry.body().toString())
  backlog.jump(isHeldBySome)
  assert.deepEqual(
    entries.map((entry) => entry.chunk.length === entry.end - entry.start),
    [true, false, true, false],
  )
  assert.deepEqual(
    entries.map((entry) => entry.body().toString()),
    bodies,
  )
})
