import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webhookReplyBytesMax } from '../../../../src/delivery/limits.ts'
import {
  type ReplyIntake,
  ReplyReader,
  type WebhookReply,
} from '../../../../src/delivery/attempts/reply-reader.ts'

class TestIntake implements ReplyIntake {
  readonly taken: WebhookReply[] = []
  heldBytes = 0
  bytesMax = Number.POSITIVE_INFINITY
  droppedCount = 0
  wants(contentType: string): boolean {
    return contentType === 'application/json'
  }
  reserve(bytes: number): boolean {
    if (this.heldBytes + bytes > this.bytesMax) return false
    this.heldBytes += bytes
    return true
  }
  release(bytes: number): void {
    this.heldBytes -= bytes
  }
  take(reply: WebhookReply): void {
    this.taken.push(reply)
  }
  dropped(): void {
    this.droppedCount++
  }
}

const json = { 'content-type': 'application/json' }

function open(): { intake: TestIntake; reader: ReplyReader } {
  const intake = new TestIntake()
  return { intake, reader: new ReplyReader(intake) }
}

test('the body of a good response is passed on in full, with its room', () => {
  const { intake, reader } = open()
  reader.begin(201, json)
  reader.add(Buffer.from('{"a'))
  reader.add(Buffer.from('":1}'))
  reader.end('key')
  assert.deepEqual(intake.taken, [
    { orderingKey: 'key', contentType: 'application/json', body: Buffer.from('{"a":1}') },
  ])
  assert.equal(intake.heldBytes, 7)
  reader.abandon()
  assert.equal(intake.heldBytes, 7, 'it is the taker’s to release')
})

test('bodies of error responses, other types and other encodings are not read', () => {
  const { intake, reader } = open()
  const answers: readonly (readonly [number, Record<string, string | string[]>])[] = [
    [199, json],
    [300, json],
    [410, json],
    [200, {}],
    [200, { 'content-type': 'text/plain' }],
    [200, { 'content-type': ['application/json', 'text/plain'] }],
    [200, { ...json, 'content-encoding': 'gzip' }],
    [200, { ...json, 'content-length': '0' }],
  ]
  for (const [status, headers] of answers) {
    reader.begin(status, headers)
    assert(!reader.isReading, JSON.stringify(headers))
    reader.add(Buffer.from('{}'))
    reader.end('key')
  }
  assert.deepEqual([intake.taken, intake.heldBytes, intake.droppedCount], [[], 0, 0])
})

test('a body that is too large, or for which there is no room, is dropped and its room returned', () => {
  const { intake, reader } = open()
  const chunk = Buffer.alloc(webhookReplyBytesMax / 2)
  reader.begin(200, json)
  reader.add(chunk)
  reader.add(chunk)
  assert.equal(intake.heldBytes, webhookReplyBytesMax, 'it may be as large as that')
  reader.add(Buffer.from('x'))
  assert(!reader.isReading)
  assert.deepEqual([intake.heldBytes, intake.droppedCount], [0, 1])
  reader.add(chunk)
  reader.end('key')

  intake.bytesMax = 10
  reader.begin(200, json)
  reader.add(Buffer.from('123456'))
  reader.add(Buffer.from('123456'))
  reader.end('key')
  assert.deepEqual([intake.heldBytes, intake.droppedCount, intake.taken.length], [0, 2, 0])
})

test('a response that breaks off leaves nothing, and the next one gets none of it', () => {
  const { intake, reader } = open()
  reader.begin(200, json)
  reader.add(Buffer.from('half'))
  reader.abandon()
  assert.equal(intake.heldBytes, 0)
  reader.begin(200, json)
  reader.add(Buffer.from('half'))
  reader.begin(200, json)
  reader.add(Buffer.from('{}'))
  reader.end('key')
  assert.deepEqual(
    intake.taken.map(({ body }) => body.toString()),
    ['{}'],
  )
  assert.equal(intake.heldBytes, 2)
})
