import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { LongResponse } from '../../../src/private-api/long-response.ts'
import { settle } from '../../support/kit/fake-clock.ts'

/** A reader, its key, and a stream that ends the response when it is told to stop. */
class Reader extends EventEmitter {
  readonly req = { socket: Object.assign(new EventEmitter(), { destroyed: false }) }
  readonly told: string[] = []
  isKeyOver = false
  endKey: (() => void) | undefined

  end(): void {
    this.told.push('end')
  }

  destroy(): void {
    this.told.push('destroy')
  }

  follow(): LongResponse {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the part that is used
    const response = new LongResponse(this as unknown as ServerResponse, (stop) => {
      this.endKey = stop
      if (this.isKeyOver) stop()
      return () => (this.endKey = undefined)
    })
    let isStopped = false
    response.follow(
      () => {
        if (isStopped) return
        isStopped = true
        this.told.push('stop')
        response.end()
      },
      () => this.told.push('taken'),
    )
    return response
  }

  /** Whether anything is still watched. */
  get isWatched(): boolean {
    this.req.socket.emit('close')
    this.emit('drain')
    return this.endKey !== undefined || this.listenerCount('drain') > 0
  }
}

test('the end of the key and the end of the connection stop a response once', () => {
  const ends: ((reader: Reader) => void)[] = [
    (reader) => reader.endKey?.(),
    (reader) => reader.req.socket.emit('close'),
  ]
  for (const end of ends) {
    const reader = new Reader()
    reader.follow()
    assert.deepEqual(reader.told, [])
    end(reader)
    assert.equal(reader.isWatched, false)
    assert.deepEqual(reader.told, ['stop', 'end'])
  }
})

test('a response whose key is over or whose reader is gone when it begins is stopped at once, and nothing stays watched', () => {
  const over = new Reader()
  over.isKeyOver = true
  over.follow()
  const gone = new Reader()
  gone.req.socket.destroyed = true
  gone.follow()
  for (const reader of [over, gone]) {
    assert.deepEqual(reader.told, ['stop', 'end'])
    assert.equal(reader.isWatched, false)
    assert.deepEqual(reader.told, ['stop', 'end'])
  }
})

test('all who wait go on when the reader has taken everything, or when the response is over', async () => {
  const reader = new Reader()
  const response = reader.follow()
  const gone: string[] = []
  void response.drained().then(() => gone.push('one'))
  void response.drained().then(() => gone.push('two'))
  await settle()
  assert.equal(gone.length, 0)
  reader.emit('drain')
  await settle()
  assert.deepEqual([gone, reader.told], [['one', 'two'], ['taken']])
  void response.drained().then(() => gone.push('three'))
  response.destroy()
  void response.drained().then(() => gone.push('four'))
  await settle()
  assert.deepEqual(gone, ['one', 'two', 'three', 'four'])
  assert.deepEqual(reader.told, ['taken', 'destroy'])
})

test('a response is followed once: a second one who follows it is a bug', () => {
  const response = new Reader().follow()
  assert.throws(() => response.follow(() => response.end()), /a response is followed once/)
})
