import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type FrameSink,
  FrameWriter,
  linkPieceBytes,
} from '../../../../src/links/link/frame-writer.ts'
import { FrameReader } from '../../../../src/links/link/frame-reader.ts'
import { fin, frameType } from '../../../../src/links/link/frame.ts'
import { linkPayloadBytesMax } from '../../../../src/process/limits.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'

/** A socket that keeps what it gets, and takes all of it at once unless it is slow. */
class Sink implements FrameSink {
  readonly written: Uint8Array[] = []
  isSlow = false
  writableNeedDrain = false
  get writableLength(): number {
    return this.isSlow ? 1 : 0
  }
  #onDone: (() => void)[] = []
  write(bytes: Uint8Array, done?: () => void): boolean {
    if (done !== undefined) this.#onDone.push(done)
    // A slow socket reads the memory later.
    this.written.push(this.isSlow ? bytes : Uint8Array.from(bytes))
    return true
  }
  /** The system takes what was written so far. */
  finish(): void {
    for (const done of this.#onDone.splice(0)) done()
  }
  get bytes(): Buffer {
    return Buffer.concat(this.written)
  }
}

class Turns {
  #due: (() => void)[] = []
  soon(fire: () => void): void {
    this.#due.push(fire)
  }
  end(): void {
    for (const fire of this.#due.splice(0)) fire()
  }
}

interface Read {
  readonly exchange: number
  readonly type: number
  readonly text: string
}

function readAll(bytes: Buffer, step = bytes.length): Read[] {
  const read: Read[] = []
  const reader = new FrameReader(({ exchange, type }, payload) => {
    read.push({ exchange, type, text: payload.toString('latin1') })
  })
  for (let at = 0; at < bytes.length; at += step) reader.read(bytes.subarray(at, at + step))
  return read
}

const drawnFrame = fc.record({
  exchange: fc.nat({ max: 2 ** 32 - 1 }),
  type: fc.constantFrom(1, 2, 3, 4, 5, 2 | fin),
  text: fc.string({ maxLength: 60 }),
  isText: fc.boolean(),
})

test('frames arrive as they were written, in their order, in pieces of any size', () => {
  fc.assert(
    fc.property(
      fc.array(drawnFrame, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 40 }),
      fc.boolean(),
      (frames, step, isSlow) => {
        const [sink, turns] = [new Sink(), new Turns()]
        sink.isSlow = isSlow
        const writer = new FrameWriter(sink, turns)
        for (const { exchange, type, text, isText } of frames) {
          if (isText) writer.writeText({ exchange, type }, text, 'utf8')
          else writer.write({ exchange, type }, Buffer.from(text))
        }
        turns.end()
        const expected = frames.map(({ exchange, type, text }) => ({
          exchange,
          type,
          text: Buffer.from(text).toString('latin1'),
        }))
        assert.deepEqual(readAll(sink.bytes, step), expected)
      },
    ),
    { numRuns: drawnRuns(200) },
  )
})

test('what is written in one turn goes out in one write', () => {
  const [sink, turns] = [new Sink(), new Turns()]
  const writer = new FrameWriter(sink, turns)
  for (let exchange = 0; exchange < 100; exchange++) writer.write({ exchange, type: 2 })
  assert.equal(sink.written.length, 0)
  turns.end()
  assert.equal(sink.written.length, 1)
  writer.write({ exchange: 1, type: 2 })
  turns.end()
  assert.equal(sink.written.length, 2)
})

test('each writer is told once that the system has its frames, and not before', () => {
  const [sink, turns] = [new Sink(), new Turns()]
  const told: string[] = []
  const writer = new FrameWriter(sink, turns)
  writer.write({ exchange: 1, type: 2 })
  turns.end()
  for (const name of ['a', 'b']) {
    writer.write({ exchange: 1, type: 2 })
    writer.whenFlushed(() => told.push(name))
  }
  sink.finish()
  turns.end()
  assert.deepEqual(told, [])
  writer.write({ exchange: 1, type: 2 })
  turns.end()
  sink.finish()
  sink.finish()
  assert.deepEqual(told, ['a', 'b'])
})

test('a slow socket keeps the memory it was given', () => {
  const [sink, turns] = [new Sink(), new Turns()]
  sink.isSlow = true
  const writer = new FrameWriter(sink, turns)
  for (const text of ['first', 'second']) {
    writer.writeText({ exchange: 1, type: 2 }, text, 'latin1')
    turns.end()
  }
  assert.deepEqual(
    readAll(sink.bytes).map(({ text }) => text),
    ['first', 'second'],
  )
})

test('a long payload is split, and only its last frame ends the message', () => {
  const [sink, turns] = [new Sink(), new Turns()]
  const writer = new FrameWriter(sink, turns)
  const text = 'ab'.repeat(linkPieceBytes)
  writer.writeText({ exchange: 7, type: frameType.data | fin }, text, 'latin1')
  turns.end()
  const read = readAll(sink.bytes)
  assert.deepEqual(
    read.map(({ type }) => type),
    [frameType.data, frameType.data | fin],
  )
  assert.equal(read.map((frame) => frame.text).join(''), text)
})

test('a length that no frame has is an error', () => {
  const bytes = Buffer.alloc(9)
  bytes.writeUInt32LE(linkPayloadBytesMax + 1)
  assert.throws(() => readAll(bytes), /expected a frame/)
})
