import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tailSilenceMs } from '../../../../src/api/limits.ts'
import { TailStream, tailWaitingBytesMax } from '../../../../src/features/tail/tail-stream.ts'
import type { PushOperation } from '../../../../src/shard/operations.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

class Reader {
  text = ''
  isFull = false
  isEnded = false
  ends = 0
  readonly clock = new FakeClock()
  readonly tail: TailStream

  constructor(hasPayloads = false, hasExcerpts = false) {
    this.tail = new TailStream(
      {
        write: (bytes) => {
          this.text += bytes.toString()
          return !this.isFull
        },
        end: () => {
          this.isEnded = true
        },
      },
      this.clock,
      { payload: hasPayloads, excerpt: hasExcerpts },
      () => {
        this.ends += 1
      },
    )
  }

  /** What was written since the last call, without the first line. */
  take(): string {
    const { text } = this
    this.text = ''
    return text.replace(/^retry: \d+\n\n/, '')
  }

  drain(isFullAgain = false): void {
    this.isFull = isFullAgain
    this.tail.drained()
  }
}

function idsIn(written: string): string[] {
  return written.match(/(?<="update_id":)\d+/g) ?? []
}

function push(updateId: number, text = '"message":{}'): PushOperation {
  return {
    kind: 'push',
    queue: 4711,
    updateId,
    typeNumber: 0,
    orderingKey: '',
    acceptedAtS: 0,
    expiresAtS: 0,
    text: Buffer.from(text),
    idempotency: undefined,
  }
}

test('a tail shows types and sizes, and payloads only on request', () => {
  const plain = new Reader()
  plain.tail.pushed(push(7, '"message":{"text":"secret"}'))
  assert.equal(plain.take(), 'event: update\ndata: {"update_id":7,"type":"message","bytes":27}\n\n')
  const full = new Reader(true)
  full.tail.pushed(push(7, '"message":{"text":"hello"}'))
  assert.equal(
    full.take(),
    'event: update\ndata: {"update_id":7,"type":"message","bytes":26,"update":{"message":{"text":"hello"}}}\n\n',
  )
})

test('a tail shows what the bot confirms and drops', () => {
  const reader = new Reader()
  const advanced = { from: 1, floor: 9, removedCount: 3, removedBytes: 100 }
  reader.tail.advanced('confirm', advanced)
  reader.tail.advanced('drop', advanced)
  assert.equal(
    reader.take(),
    'event: confirmed\ndata: {"count":3,"below":9}\n\nevent: dropped\ndata: {"count":3,"below":9}\n\n',
  )
})

test('line breaks within an update do not end its event', () => {
  const reader = new Reader(true)
  reader.tail.pushed(push(7, '"message":\r\n{\n}\r'))
  const [event = '', ...others] = reader.take().split('\n\n')
  assert.deepEqual(others, [''])
  const data = event
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
    .join('\n')
  assert.deepEqual(JSON.parse(data).update, { message: {} })
})

test('events wait for a slow reader up to a bound, and the rest is counted', () => {
  const reader = new Reader(true)
  const text = `"message":{"text":"${'x'.repeat(50_000)}"}`
  reader.isFull = true
  for (let id = 1; id <= 10; id++) reader.tail.pushed(push(id, text))
  assert.deepEqual(idsIn(reader.take()), ['1'])
  reader.drain()
  const written = reader.take()
  assert(written.length <= tailWaitingBytesMax + 100)
  assert.deepEqual(idsIn(written), ['2', '3', '4', '5', '6'])
  assert(written.endsWith('event: missed\ndata: {"count":4}\n\n'), written.slice(-100))
  reader.tail.pushed(push(11, text))
  assert.deepEqual(idsIn(reader.take()), ['11'])
})

test('once an event was left out, none follows before its reader knows', () => {
  const reader = new Reader(true)
  reader.isFull = true
  reader.tail.pushed(push(1))
  reader.tail.pushed(push(2, `"message":{"text":"${'x'.repeat(tailWaitingBytesMax - 1_000)}"}`))
  reader.tail.pushed(push(3, `"message":{"text":"${'x'.repeat(10_000)}"}`))
  // This one would fit.
  reader.tail.pushed(push(4))
  reader.take()
  reader.drain()
  const written = reader.take()
  assert.deepEqual(idsIn(written), ['2'])
  assert(written.endsWith('event: missed\ndata: {"count":2}\n\n'))
})

test('a reader that stays slow gets what waits bit by bit, in order', () => {
  const reader = new Reader()
  reader.isFull = true
  for (let id = 1; id <= 4; id++) reader.tail.pushed(push(id))
  const ids: string[] = []
  for (let round = 0; round < 5; round++) {
    ids.push(...(reader.take().match(/(?<="update_id":)\d+/g) ?? []))
    reader.drain(true)
  }
  assert.deepEqual(ids, ['1', '2', '3', '4'])
})

test('an update that is larger than the bound waits alone', () => {
  const reader = new Reader(true)
  reader.isFull = true
  reader.tail.pushed(push(1))
  reader.take()
  reader.tail.pushed(push(2, `"message":{"text":"${'x'.repeat(tailWaitingBytesMax)}"}`))
  reader.tail.pushed(push(3))
  reader.drain()
  const written = reader.take()
  assert(written.includes('"update_id":2'))
  assert(written.endsWith('event: missed\ndata: {"count":1}\n\n'))
})

test('a silent tail sends a comment, but not to a reader that does not read', async () => {
  const reader = new Reader()
  reader.take()
  await reader.clock.advance(tailSilenceMs)
  assert.equal(reader.take(), ':\n\n')
  reader.isFull = true
  reader.tail.pushed(push(1))
  reader.take()
  await reader.clock.advance(tailSilenceMs * 3)
  assert.equal(reader.take(), '')
})

test('a tail ends once, stops its timer, and writes nothing afterward', () => {
  const reader = new Reader()
  reader.take()
  reader.tail.end()
  reader.tail.end()
  reader.tail.pushed(push(1))
  assert.equal(reader.ends, 1)
  assert.equal(reader.isEnded, true)
  assert.equal(reader.clock.timers, 0)
  assert.equal(reader.take(), '')
})
