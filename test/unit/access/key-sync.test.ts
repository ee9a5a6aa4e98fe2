import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { accessKeyHash } from '../../../src/access/access-key.ts'
import { AccessKeyRing } from '../../../src/access/access-key-ring.ts'
import { type AccessKeyTable, keyTable } from '../../../src/access/access-key-table.ts'
import { PostboteError } from '../../../src/kit/errors.ts'
import {
  keyAnswerMs,
  keyFirstRefreshMs,
  type KeyQuestion,
  keyRefreshMs,
  KeySync,
} from '../../../src/access/key-sync.ts'
import type { OwnerResponse, OwnerStream } from '../../../src/links/ask/owner-stream.ts'
import type { AccessKeyRecord } from '../../../src/shard/records/access-key-record.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'

const id = '0123456789abcdef'
const secret = 'a'.repeat(43)
const record: AccessKeyRecord = {
  name: 'producer',
  scopes: ['push'],
  secrets: [{ sha256: accessKeyHash(secret).toString('base64url') }],
  createdAtMs: 0,
  limitSlot: 0,
}
const none = keyTable(new Map())
const one = keyTable(new Map([[id, record]]))

/** A worker that asks an owner, which the test is. */
class Worker {
  readonly clock = new FakeClock()
  readonly ring = new AccessKeyRing(this.clock)
  readonly questions: KeyQuestion[] = []
  table: AccessKeyTable = none
  /** Whether the owner answers, answers when the test says so, cannot be reached, or hangs. */
  owner: 'answers' | 'slowly' | 'away' | 'hangs' = 'answers'
  readonly held: (() => void)[] = []
  readonly sync = new KeySync({
    clock: this.clock,
    ring: this.ring,
    registry: {
      table: () => Promise.reject(new Error('another worker has the keys')),
      noteUses: () => undefined,
    },
    isOwner: () => false,
    openStream: () => this.#stream(),
  })

  knows(): boolean {
    return this.ring.find({ id, secret }) !== undefined
  }

  #stream(): OwnerStream {
    let text = ''
    let answer: (response: OwnerResponse) => void = ignore
    let fail: (error: Error) => void = ignore
    const response = new Promise<OwnerResponse>((resolve, reject) => {
      answer = resolve
      fail = reject
    })
    return {
      write: (bytes) => {
        text += Buffer.from(bytes).toString()
        return true
      },
      drained: () => Promise.resolve(),
      end: () => {
        const question: KeyQuestion = JSON.parse(text)
        this.questions.push(question)
        if (this.owner === 'hangs') return
        if (this.owner === 'away') {
          fail(new PostboteError('STORE_UNAVAILABLE'))
          return
        }
        const isSame = question.version === this.table.version
        const body = new PassThrough()
        body.end(JSON.stringify(isSame ? { version: this.table.version } : this.table))
        const send = (): void => answer({ status: 200, retryAfter: undefined, body })
        if (this.owner === 'slowly') this.held.push(send)
        else send()
      },
      response,
      destroy: () => undefined,
    }
  }
}

test('a worker asks until it knows the keys, and then regularly', async () => {
  const worker = new Worker()
  worker.owner = 'away'
  void worker.sync.start()
  await worker.clock.advance(10_000)
  assert.equal(worker.ring.isKnown, false)
  worker.owner = 'answers'
  await worker.clock.advance(keyAnswerMs + keyFirstRefreshMs)
  assert.equal(worker.ring.isKnown, true)
  assert.equal(worker.knows(), false)
  worker.table = one
  await worker.clock.advance(keyRefreshMs)
  assert.equal(worker.knows(), true)
  worker.table = none
  await worker.clock.advance(keyRefreshMs)
  assert.equal(worker.knows(), false)
  worker.sync.close()
  const { length } = worker.questions
  await worker.clock.advance(10 * keyRefreshMs)
  assert.equal(worker.questions.length, length)
})

test('a worker that cannot ask goes on with the keys that it knows', async () => {
  const worker = new Worker()
  worker.table = one
  assert.equal(await worker.sync.refresh(), true)
  for (const owner of ['away', 'hangs'] as const) {
    worker.owner = owner
    const refreshed = worker.sync.refresh()
    await worker.clock.advance(2 * keyAnswerMs)
    assert.equal(await refreshed, false)
    assert.equal(worker.knows(), true)
  }
})

test('a worker that is told of a change while it asks asks once more, since the answer may be older', async () => {
  const worker = new Worker()
  worker.owner = 'slowly'
  const first = worker.sync.refresh()
  await settle()
  worker.table = one
  const told = [worker.sync.refresh(), worker.sync.refresh()]
  worker.owner = 'answers'
  worker.held[0]?.()
  await Promise.all([first, ...told])
  assert.equal(worker.knows(), true)
  assert.equal(worker.questions.length, 2)
})

test('a worker sends the version that it has, and each use once', async () => {
  const worker = new Worker()
  worker.table = one
  await worker.sync.refresh()
  worker.knows()
  await worker.sync.refresh()
  await worker.sync.refresh()
  const usedAtS = Math.floor(worker.clock.nowMs() / 1_000)
  assert.deepEqual(worker.questions, [
    { version: '', uses: {} },
    { version: one.version, uses: { [id]: usedAtS } },
    { version: one.version, uses: {} },
  ])
})

test('uses that did not arrive are sent again', async () => {
  const worker = new Worker()
  worker.table = one
  await worker.sync.refresh()
  worker.knows()
  worker.owner = 'away'
  const failed = worker.sync.refresh()
  await worker.clock.advance(2 * keyAnswerMs)
  await failed
  worker.owner = 'answers'
  await worker.sync.refresh()
  assert.equal(Object.keys(worker.questions.at(-1)?.uses ?? {}).length, 1)
})

function ignore(): void {
  // Replaced at once.
}
