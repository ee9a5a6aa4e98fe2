import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  bucketOf,
  deliveryBoundsMs,
  histograms,
  percentileMs,
} from '../../../src/kit/histograms.ts'
import { boundsMax, histogramsMax } from '../../../src/process/shared-memory/metric-slot.ts'

test('a time is in the bucket of the first bound that is not below it', () => {
  for (const [ms, bucket] of [
    [0, 0],
    [1, 0],
    [1.01, 1],
    [3, 1],
    [3.1, 2],
    [4, 2],
    [4.1, 3],
    [1e12, 3],
  ] as const) {
    assert.equal(bucketOf([1, 3, 4], ms), bucket, `${ms} ms`)
  }
})

test('the bounds of all histograms rise, and they fit into a slot', () => {
  assert.ok(histograms.length <= histogramsMax)
  for (const { name, boundsMs } of histograms) {
    assert.ok(boundsMs.length <= boundsMax, name)
    assert.deepEqual(
      [...new Set(boundsMs)].toSorted((a, b) => a - b),
      boundsMs,
      name,
    )
  }
  assert.deepEqual([deliveryBoundsMs[0], deliveryBoundsMs.at(-1)], [1, 24 * 3_600_000])
})

test('a percentile is within its bucket, and there is none without observations', () => {
  const bounds = [10, 20, 40]
  assert.equal(percentileMs(bounds, [0, 0, 0, 0], 0.5), undefined)
  assert.equal(percentileMs(bounds, [0, 4, 0, 0], 0.5), 15)
  assert.equal(percentileMs(bounds, [98, 1, 1, 0], 0.99), 20)
  assert.equal(percentileMs(bounds, [98, 0, 2, 0], 0.99), 30)
  assert.equal(percentileMs(bounds, [0, 0, 0, 3], 0.5), 40, 'the last bound, for what is above it')
})
