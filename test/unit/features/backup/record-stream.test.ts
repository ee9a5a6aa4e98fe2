import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { LongResponse } from '../../../../src/private-api/long-response.ts'
import {
  RecordStream,
  recordStreamBytesPerS,
  recordStreamIdleMs,
} from '../../../../src/features/backup/record-stream.ts'
import { snapshotStepBytes } from '../../../../src/store/limits.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { whileTimePasses } from '../../../support/store/shard-life.ts'

/** The part of a response that a stream uses. */
class Reader extends EventEmitter {
  readonly req = { socket: Object.assign(new EventEmitter(), { destroyed: false }) }
  readonly written: string[] = []
  takes = true
  ending = 'open'

  write(bytes: Buffer): boolean {
    this.written.push(bytes.toString())
    return this.takes
  }

  end(): void {
    this.ending = 'whole'
  }

  destroy(): void {
    this.ending = 'broken off'
  }
}

/** How long a small frame takes. */
const smallFrameMs = (snapshotStepBytes / recordStreamBytesPerS) * 1_000

class Section {
  closes = 0
  failsAt = Infinity
  frameBytes = 1

  async *frames(): AsyncGenerator<Buffer, void, void> {
    for (let at = 0; at < 4; at++) {
      if (at === this.failsAt) throw new Error('the shard is closed')
      yield Buffer.from(`${at}`.padEnd(this.frameBytes))
    }
  }

  async close(): Promise<void> {
    this.closes += 1
  }
}

function begin(reader = new Reader(), section = new Section()) {
  const clock = new FakeClock()
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the part that is used
  const response = new LongResponse(reader as unknown as ServerResponse, () => () => undefined)
  const world = { reader, section, clock, recordStreams: { size: 1 } }
  const stream = new RecordStream(0, response, section, world)
  return Object.assign(world, { stream, sent: stream.send() })
}

test('a reader gets all frames, and then the end', async () => {
  const { reader, section, sent, clock } = begin()
  await whileTimePasses(clock, sent)
  assert.deepEqual(reader.written, ['0', '1', '2', '3'])
  assert.deepEqual([reader.ending, section.closes, clock.timers], ['whole', 1, 0])
  assert.equal(reader.listenerCount('drain'), 0)
})

test('no frame is read before the reader has taken the one before', async () => {
  const reader = new Reader()
  reader.takes = false
  const { sent, clock, section } = begin(reader)
  for (let frames = 1; frames <= 4; frames++) {
    await settle()
    await settle()
    assert.equal(reader.written.length, frames)
    assert.equal(clock.timers, 1)
    await clock.advance(recordStreamIdleMs - 1)
    reader.emit('drain')
    await clock.advance(smallFrameMs)
  }
  await whileTimePasses(clock, sent)
  assert.deepEqual([reader.ending, section.closes, clock.timers], ['whole', 1, 0])
})

test('a reader that takes nothing for long is cut off, and the section is closed', async () => {
  const reader = new Reader()
  reader.takes = false
  const { sent, clock, section } = begin(reader)
  await settle()
  await clock.advance(recordStreamIdleMs)
  await whileTimePasses(clock, sent)
  assert.deepEqual([reader.written, reader.ending, section.closes], [['0'], 'broken off', 1])
})

test('a reader that is gone costs no further frame', async () => {
  const reader = new Reader()
  reader.takes = false
  const { sent, clock, section } = begin(reader)
  await settle()
  reader.req.socket.emit('close')
  await whileTimePasses(clock, sent)
  assert.deepEqual([reader.written, section.closes, clock.timers], [['0'], 1, 0])
})

test('a stream that is stopped, or whose shard is closed, is broken off and not ended', async () => {
  const stopped = begin()
  stopped.stream.stop()
  await whileTimePasses(stopped.clock, stopped.sent)
  assert.deepEqual([stopped.reader.ending, stopped.section.closes], ['broken off', 1])
  const section = new Section()
  section.failsAt = 2
  const failed = begin(new Reader(), section)
  await whileTimePasses(failed.clock, failed.sent)
  assert.deepEqual(failed.reader.written, ['0', '1'])
  assert.deepEqual([failed.reader.ending, section.closes], ['broken off', 1])
})

test('no more is sent than the pace of an export allows, so that pushes have their turn', async () => {
  const section = new Section()
  section.frameBytes = recordStreamBytesPerS / 100
  const { reader, clock, sent } = begin(new Reader(), section)
  for (let frames = 1; frames <= 4; frames++) {
    await clock.advance(0)
    assert.equal(reader.written.length, frames)
    await clock.advance(9)
    assert.equal(reader.written.length, frames)
    await clock.advance(1)
  }
  await sent
  assert.equal(reader.ending, 'whole')
})

test('a frame of small records takes as long as a large one, and exports of a worker share its time', async () => {
  const world = begin()
  const { reader, clock, sent } = world
  world.recordStreams.size = 3
  for (let frames = 1; frames <= 4; frames++) {
    await clock.advance(0)
    assert.equal(reader.written.length, frames)
    await clock.advance(3 * smallFrameMs - 1)
    assert.equal(reader.written.length, frames)
    await clock.advance(1)
  }
  await sent
  assert.equal(reader.ending, 'whole')
})
