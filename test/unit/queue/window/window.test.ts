import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Window, type WindowEntry, wireSlices } from '../../../../src/queue/window/window.ts'

function append(window: Window, updateId: number, text = '"message":{}'): void {
  window.append({
    updateId,
    typeNumber: 0,
    acceptedAtS: 1,
    expiresAtS: 2,
    orderingKey: 'k',
    text: Buffer.from(text),
  })
}

function filled(count: number, text?: string): Window {
  const window = new Window()
  for (let updateId = 1; updateId <= count; updateId++) append(window, updateId, text)
  return window
}

function ids(entries: readonly WindowEntry[]): number[] {
  return entries.map(({ updateId }) => updateId)
}

function wire(entries: readonly WindowEntry[]): string {
  return Buffer.concat(wireSlices(entries)).toString()
}

test('entries are in the form in which they are sent, and neighbors are one slice', () => {
  const window = filled(3)
  const all = window.after(0, 10)
  assert.equal(
    wire(all),
    ',{"update_id":1,"message":{}},{"update_id":2,"message":{}},{"update_id":3,"message":{}}',
  )
  assert.equal(wireSlices(all).length, 1)
  assert.equal(window.bytes, wire(all).length)
  assert.equal(all[1]?.body().toString(), '{"update_id":2,"message":{}}')
  window.remove([all[1]])
  assert.equal(wireSlices(window.after(0, 10)).length, 2, 'a hole between them')
  assert.deepEqual(wireSlices([]), [])
})

test('slices contain the entries and are as long as possible, whatever ids are missing or were removed', () => {
  const step = fc.record({
    gap: fc.integer({ min: 1, max: 3 }),
    text: fc.constantFrom('x'.repeat(90), 'y'.repeat(400), 'z'.repeat(3_000)),
    isRemoved: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.nat(80), (steps, limit) => {
      const window = new Window()
      let updateId = 0
      const removed: { updateId: number }[] = []
      for (const { gap, text, isRemoved } of steps) {
        updateId += gap
        append(window, updateId, text)
        if (isRemoved && gap === 2) removed.push({ updateId })
      }
      window.remove(removed)
      const entries = window.after(0, limit)
      const parts = entries.map(({ chunk, start, end }) => chunk.subarray(start, end))
      const runs = entries.filter((entry, index) => {
        const before = entries[index - 1]
        return before?.chunk !== entry.chunk || before.end !== entry.start
      })
      assert.deepEqual(Buffer.concat(wireSlices(entries)), Buffer.concat(parts))
      assert.equal(wireSlices(entries).length, runs.length)
    }),
  )
})

test('text is copied byte for byte, whatever happens to its buffer afterwards', () => {
  const window = new Window()
  const text = Buffer.from('"message":{"t":"\u00e9 \\u00e9 12345678901234567890"}')
  window.append({
    updateId: 7,
    typeNumber: 0,
    acceptedAtS: 1,
    expiresAtS: 2,
    orderingKey: 'k',
    text,
  })
  const expected = `{"update_id":7,${text.toString()}}`
  text.fill(0)
  assert.equal(window.first()?.body().toString(), expected)
})

test('chunks grow from 1 to 64 KiB, and full-size chunks are in shared memory', () => {
  const window = filled(2_000, `"message":{"t":"${'x'.repeat(100)}"}`)
  const sizes = [...new Set(window.after(0, 2_000).map(({ chunk }) => chunk))].map((chunk) => {
    assert.equal(chunk.buffer instanceof SharedArrayBuffer, chunk.length === 65_536)
    return chunk.length
  })
  assert.deepEqual(sizes.slice(0, 8), [1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 65_536])
})

test('an update larger than any chunk gets a separate one', () => {
  const window = filled(1, `"message":{"t":"${'x'.repeat(500_000)}"}`)
  append(window, 2)
  const [large, small] = window.after(0, 2)
  assert.equal(large?.chunk.length, large!.end - large!.start)
  assert.notEqual(large?.chunk, small?.chunk)
})

test('a window that often becomes empty keeps its small chunk and releases a large one', () => {
  const window = new Window()
  append(window, 1)
  const chunk = window.first()?.chunk
  window.removeBelow(2)
  append(window, 2)
  assert.equal(window.first()?.chunk, chunk)
  assert.equal(window.first()?.body().toString(), '{"update_id":2,"message":{}}')
  const busy = filled(1_000)
  const large = busy.after(999, 1)[0]?.chunk
  busy.removeBelow(1_001)
  append(busy, 1_001)
  assert.notEqual(busy.first()?.chunk, large)
})

test('entries are found by id, by position, and from the end', () => {
  const window = filled(10)
  window.remove([window.find(5)!, window.find(9)!])
  assert.equal(window.find(5), undefined)
  assert.equal(window.find(11), undefined)
  assert.deepEqual(ids(window.after(3, 3)), [4, 6, 7])
  assert.deepEqual(ids(window.after(4, 1)), [6])
  assert.equal(window.idBeforeNewest(0), 10)
  assert.equal(window.idBeforeNewest(1), 8)
  assert.equal(window.idBeforeNewest(7), 1)
  assert.equal(window.idBeforeNewest(8), undefined)
})

test('removed entries after one that stays do not keep their chunks in memory', () => {
  const window = filled(1)
  for (let updateId = 2; updateId < 5_000; updateId++) {
    append(window, updateId)
    window.remove([window.find(updateId)!])
    assert(window.heldCount < 300)
  }
  assert.equal(window.liveCount, 1)
})

test('any sequence of appends and removals leaves the same as in a plain list', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), size: fc.integer({ min: 0, max: 3_000 }) }),
    fc.record({ kind: fc.constantFrom('below', 'some'), size: fc.integer({ min: 0, max: 400 }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const window = new Window()
      let list: { id: number; text: string }[] = []
      let nextId = 10
      for (const { kind, size } of steps) {
        if (kind === 'append') {
          const text = `"message":{"t":"${'x'.repeat(size)}"}`
          list.push({ id: nextId, text })
          append(window, nextId, text)
          nextId += 1 + (size % 3)
          continue
        }
        const isGone = (id: number): boolean =>
          kind === 'below' ? id < 10 + size : id % 10 === size % 10
        const gone = list.filter(({ id }) => isGone(id))
        const removed =
          kind === 'below'
            ? window.removeBelow(10 + size)
            : window.remove(window.after(0, Infinity).filter(({ updateId }) => isGone(updateId)))
        if ('updateIds' in removed) {
          assert.deepEqual(
            removed.updateIds,
            gone.map(({ id }) => id),
          )
        }
        const { count, bytes } = removed
        assert.deepEqual(
          { count, bytes },
          {
            count: gone.length,
            bytes: gone.reduce((sum, { text }) => sum + text.length, 0),
          },
        )
        list = list.filter(({ id }) => !isGone(id))
      }
      const expected = list.map(({ id, text }) => `,{"update_id":${id},${text}}`).join('')
      assert.equal(wire(window.after(0, Infinity)), expected)
      assert.equal(window.bytes, expected.length)
      assert.equal(window.liveCount, list.length)
      assert.equal(window.first()?.updateId, list[0]?.id)
    }),
  )
})
