import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnwrittenRemovals } from '../../../src/queue/queue-reader.ts'

test('removals that are written during a read are remembered until its end, however many', async () => {
  const removals = new UnwrittenRemovals()
  const ids = Array.from({ length: 200_000 }, (_value, index) => index)
  for (const id of ids) removals.add(id)
  const used = removals.during(
    () => new Promise((resolve) => void setImmediate(resolve)),
    () => removals.has(7),
  )
  removals.written(ids)
  assert.equal(await used, true)
  assert.equal(removals.has(7), false)
})
