import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import {
  MetricSlot,
  metricSlotWords,
  metricsMax,
} from '../../../../src/process/shared-memory/metric-slot.ts'
import { forEachHistogram, histograms } from '../../../../src/kit/histograms.ts'
import { metrics } from '../../../../src/kit/metrics.ts'

function newSlot(): { slot: MetricSlot; words: Int32Array } {
  const words = new Int32Array(new SharedArrayBuffer(metricSlotWords * 4))
  return { slot: new MetricSlot(words), words }
}

test('the metrics fit into a slot and have unique names', () => {
  assert.ok(metrics.length <= metricsMax)
  assert.equal(new Set(metrics.map(({ name }) => name)).size, metrics.length)
})

test('the metrics of the first versions keep their cells, because a reload may mix two versions', () => {
  const names = metrics.slice(0, 90).map(({ name }) => name)
  assert.equal(names.at(-1), 'trace_spans_dropped')
  const digest = createHash('sha256').update(names.join()).digest('hex')
  assert.equal(digest.slice(0, 16), '90a70bbcc5fc10ce', 'append a metric, and do not insert it')
})

test('metrics of different names do not affect each other', () => {
  const { slot } = newSlot()
  metrics.forEach(({ name }, index) => slot.add(name, index + 1))
  assert.deepEqual(
    metrics.map(({ name }) => slot.get(name)),
    metrics.map((_metric, index) => index + 1),
  )
})

test('a counter continues exactly past 2^31, 2^32 and 2^34', () => {
  const { slot } = newSlot()
  let expected = 0
  for (let round = 0; round < 20; round++) {
    for (const amount of [2 ** 31 - 1, 1, 0, 12_345]) {
      slot.add('updates_pushed', amount)
      expected += amount
      assert.equal(slot.get('updates_pushed'), expected)
    }
  }
  assert.ok(expected > 2 ** 34)
})

test('a read between the two stores of a writer returns the number after them', () => {
  const { slot, words } = newSlot()
  for (const before of [2 ** 31 - 1, 2 ** 32 - 1, 3 * 2 ** 31 - 1, 2 ** 33 - 1]) {
    words.fill(0)
    for (let left = before; left > 0; left -= 2 ** 31 - 1) {
      slot.add('updates_pushed', Math.min(left, 2 ** 31 - 1))
    }
    assert.equal(slot.get('updates_pushed'), before)
    // Only the first store of add(1), as a writer that is killed at this point leaves it.
    Atomics.add(words, 0, 1)
    assert.equal(slot.get('updates_pushed'), before + 1)
    slot.add('updates_pushed', 2 ** 31 - 1)
    slot.add('updates_pushed', 2 ** 31 - 1)
    assert.equal(slot.get('updates_pushed'), before + 1 + 2 * (2 ** 31 - 1))
  }
})

test('a gauge can decrease, even below zero, and can be set', () => {
  const { slot } = newSlot()
  slot.add('polls_waiting', 3)
  slot.add('polls_waiting', -2)
  assert.equal(slot.get('polls_waiting'), 1)
  slot.add('polls_waiting', -5)
  assert.equal(slot.get('polls_waiting'), -4)
  slot.add('polls_waiting', 4)
  assert.equal(slot.get('polls_waiting'), 0)
  slot.set('polls_waiting', 2 ** 31 - 1)
  assert.equal(slot.get('polls_waiting'), 2 ** 31 - 1)
})

test('a counter accepts no negative amount, and no metric an amount of 2^31 or NaN', () => {
  const { slot } = newSlot()
  assert.throws(() => slot.add('updates_pushed', -1), RangeError)
  assert.throws(() => slot.add('updates_pushed', 2 ** 31), RangeError)
  assert.throws(() => slot.add('updates_pushed', Number.NaN), RangeError)
  assert.throws(() => slot.add('polls_waiting', -(2 ** 31)), RangeError)
  assert.equal(slot.get('updates_pushed'), 0)
  assert.equal(slot.get('polls_waiting'), 0)
})

test('clearing the gauges keeps the counters', () => {
  const { slot } = newSlot()
  slot.add('updates_pushed', 7)
  slot.add('bots_loaded', 8)
  slot.clearGauges()
  assert.equal(slot.get('updates_pushed'), 7)
  assert.equal(slot.get('bots_loaded'), 0)
})

test('histograms do not affect each other nor the metrics, and their sums pass 2^31', () => {
  const { slot } = newSlot()
  for (const { name } of metrics) slot.add(name, 1)
  const expected = forEachHistogram(({ boundsMs }, index) => {
    const counts = [...boundsMs.map((_, bucket) => bucket + index), 3]
    return { counts, sumMs: 0 }
  })
  for (const { name, boundsMs } of histograms) {
    for (const [bucket, count] of expected[name].counts.entries()) {
      if (count > 0) slot.observe(name, boundsMs[bucket] ?? 2 ** 30, count)
    }
  }
  for (const { name, boundsMs } of histograms) {
    const { counts, sumMs } = slot.histogram(name)
    assert.deepEqual(counts, expected[name].counts, name)
    const sum = counts.reduce((ms, count, bucket) => ms + count * (boundsMs[bucket] ?? 2 ** 30), 0)
    assert.ok(Math.abs(sumMs - sum) < 100, `${name}: ${sumMs}, expected ${sum}`)
    assert.ok(sumMs > 2 ** 31)
  }
  for (const { name } of metrics) assert.equal(slot.get(name), 1, name)
  slot.clearGauges()
  assert.equal(slot.histogram('sync').counts.at(-1), 3, 'of a process that is gone')
})

test('a time below 0, of a clock that was set back, counts as 0', () => {
  const { slot } = newSlot()
  slot.observe('delivery_polling', -5_000, 2)
  const { counts, sumMs } = slot.histogram('delivery_polling')
  assert.deepEqual([counts[0], sumMs], [2, 0])
})
