import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MemoryStore } from '../../support/store/memory-store.ts'
import type { Operation } from '../../../src/shard/operations.ts'
import {
  freshState,
  openShard,
  push,
  queue,
  reread,
  storedIds,
} from '../../support/store/shard-records.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

interface Choice {
  readonly kind: 'push' | 'confirm' | 'delete' | 'drop' | 'renumber' | 'settings'
  readonly amount: number
  readonly isWaited: boolean
}

/** Generates valid sequences of operations and folds them as protocol.md §4 specifies. */
class Script {
  readonly live = new Map<number, number>()
  nextId = 1_000
  floor = 1_000
  settings: object = {}

  operation(choice: Choice): Operation {
    switch (choice.kind) {
      case 'push': {
        const operation = push(this.nextId)
        this.live.set(this.nextId++, operation.text.length)
        return operation
      }
      case 'confirm':
      case 'drop': {
        const from = this.floor
        this.floor = Math.min(this.floor + choice.amount, this.nextId)
        return { kind: choice.kind, queue, from, floor: this.floor, ...this.#removeBelow() }
      }
      case 'delete': {
        const updateIds = [...this.live.keys()].filter((id) => id % 7 === choice.amount % 7)
        let removedBytes = 0
        for (const id of updateIds) {
          removedBytes += this.live.get(id)!
          this.live.delete(id)
        }
        return { kind: 'delete', queue, updateIds, removedBytes, floor: this.floor }
      }
      case 'renumber': {
        if (this.live.size > 0) return this.operation({ ...choice, kind: 'push' })
        this.nextId += 100
        this.floor = this.nextId
        return { kind: 'renumber', queue, nextId: this.nextId }
      }
      case 'settings':
        break
    }
    this.settings = { allowedTypes: choice.amount }
    return { kind: 'settings', queue, record: this.settings }
  }

  #removeBelow(): { readonly removedCount: number; readonly removedBytes: number } {
    const removed = { removedCount: 0, removedBytes: 0 }
    for (const [id, bytes] of this.live) {
      if (id >= this.floor) continue
      this.live.delete(id)
      removed.removedCount += 1
      removed.removedBytes += bytes
    }
    return removed
  }
}

test('the state after folding the operations is the state that is read after reopening', async () => {
  const choice: fc.Arbitrary<Choice> = fc.record({
    kind: fc.constantFrom(
      'push',
      'push',
      'push',
      'confirm',
      'delete',
      'drop',
      'renumber',
      'settings',
    ),
    amount: fc.integer({ min: 0, max: 20 }),
    isWaited: fc.boolean(),
  })
  const property = fc.asyncProperty(fc.array(choice, { maxLength: 60 }), async (choices) => {
    const { clock, store, shard } = await openShard(new MemoryStore())
    const script = new Script()
    for (const next of choices) {
      const done = shard.commit([script.operation(next)], { waited: next.isWaited })
      if (next.isWaited) await done
    }
    await clock.advance(2_000)
    await shard.close()
    store.loseUnsynced()
    const stored = await reread(store)
    await store.open()
    assert.deepEqual(stored.settings, script.settings)
    assert.deepEqual(
      (await storedIds(store)).filter((id) => id >= script.floor),
      [...script.live.keys()],
    )
    if (stored.state === undefined) return
    let liveBytes = 0
    for (const bytes of script.live.values()) liveBytes += bytes
    assert.deepEqual(stored.state, {
      ...freshState(script.nextId),
      floor: script.floor,
      liveCount: script.live.size,
      liveBytes,
    })
  })
  await fc.assert(property, { numRuns: drawnRuns(100) })
})
