import assert from 'node:assert/strict'
import { test } from 'node:test'
import { privateApiResponseBytesMax } from '../../../src/cli/limits.ts'
import { EventStreamReader } from '../../../src/cli/event-stream-reader.ts'

const text =
  'retry: 500\n\nevent: update\ndata: {"a":\ndata:  1}\n\n:\n\n: a comment\nevent: confirmed\ndata: {"b":2}\n\n'
const events = [
  { name: 'update', data: '{"a":\n 1}' },
  { name: 'confirmed', data: '{"b":2}' },
]

test('events are the same in whatever parts their text arrives', () => {
  assert.deepEqual(new EventStreamReader().take(text), events)
  for (let size = 1; size < 9; size++) {
    const reader = new EventStreamReader()
    const parts = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    assert.deepEqual(
      parts.flatMap((part) => reader.take(part)),
      events,
    )
  }
})

test('an event without end is an error, and many events are none', () => {
  const part = `event: update\ndata: {"text":"${'x'.repeat(privateApiResponseBytesMax / 3)}`
  const reader = new EventStreamReader()
  for (let nth = 0; nth < 5; nth++) assert.equal(reader.take(`${part}"}\n\n`).length, 1)
  reader.take(part)
  reader.take(part)
  assert.throws(() => reader.take(part), /an event is too large/)
})
