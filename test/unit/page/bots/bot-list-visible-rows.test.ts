import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { visibleRows } from '../../../../src/page/bots/bot-list.ts'

test('only the rows around the visible ones are in the page, of any number', () => {
  const rows = visibleRows({ scrollTop: 1_600_000, viewHeight: 640, rowHeight: 32, count: 100_000 })
  assert.deepEqual(rows, { first: 49_990, end: 50_030 })
})

test('every visible row is in the page, however the list is scrolled', () => {
  const state = fc.record({
    scrollTop: fc.integer({ min: -100, max: 4_000_000 }),
    viewHeight: fc.integer({ min: 1, max: 3_000 }),
    rowHeight: fc.integer({ min: 1, max: 100 }),
    count: fc.nat(100_000),
  })
  fc.assert(
    fc.property(state, (scroll) => {
      const { scrollTop, viewHeight, rowHeight, count } = scroll
      const { first, end } = visibleRows(scroll)
      assert(0 <= first && first <= end && end <= count)
      assert(end - first <= Math.ceil(viewHeight / rowHeight) * 2 + 30)
      // What a browser shows: it does not scroll past the end.
      const highest = Math.max(0, count * rowHeight - viewHeight)
      const top = Math.min(Math.max(scrollTop, 0), highest)
      const bottom = Math.min(top + viewHeight, count * rowHeight)
      assert(first * rowHeight <= top)
      if (scrollTop <= highest) assert(end * rowHeight >= bottom)
    }),
  )
})
