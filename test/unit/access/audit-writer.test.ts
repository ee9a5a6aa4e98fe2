import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PostboteError } from '../../../src/kit/errors.ts'
import {
  auditAgainMs,
  auditBatchMax,
  auditWaitingMax,
  auditWaitMs,
  AuditWriter,
} from '../../../src/access/audit-writer.ts'
import type { RecordedCall } from '../../../src/shard/records/audit-record.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'

function open() {
  const clock = new FakeClock()
  const batches: (readonly RecordedCall[])[] = []
  const ends: ((error?: Error) => void)[] = []
  const answered: string[] = []
  let lost = 0
  const writer = new AuditWriter(
    clock,
    { add: (_name, count) => void (lost += count) },
    { warn: () => undefined },
    (calls) => {
      batches.push(calls)
      return new Promise((resolve, reject) => {
        ends.push((error) => (error === undefined ? resolve() : reject(error)))
      })
    },
  )
  const record = (id: string): void => {
    const common = { timeMs: 1, operation: 'a', call: 'b', result: 'ok', requestId: 'c' }
    void writer.record({ id, record: common }).then(() => answered.push(id))
  }
  /** Ends the batch that is being stored. */
  const end = async (error?: Error): Promise<void> => {
    ends.shift()?.(error)
    await settle()
  }
  const idsOf = (nth: number) => batches[nth]?.map(({ id }) => id)
  return { clock, writer, record, end, batches, idsOf, answered, lost: () => lost }
}

const away = new PostboteError('STORE_UNAVAILABLE')

test('a response waits until its call is stored, and calls that arrive meanwhile are stored together', async () => {
  const { record, end, idsOf, answered } = open()
  for (const id of ['1', '2', '3']) record(id)
  await settle()
  assert.deepEqual([idsOf(0), answered], [['1'], []])
  await end()
  assert.deepEqual([idsOf(1), answered], [['2', '3'], ['1']])
  await end()
  assert.deepEqual(answered, ['1', '2', '3'])
})

test('a batch has a bound', async () => {
  const { record, end, batches } = open()
  for (let nth = 0; nth < auditBatchMax + 2; nth++) record(`${nth}`)
  await end()
  assert.deepEqual(
    batches.map((batch) => batch.length),
    [1, auditBatchMax],
  )
})

test('an error that nobody expects holds up no response either', async () => {
  const { clock, record, end, idsOf, answered } = open()
  record('1')
  await end(new Error('unexpected'))
  assert.deepEqual(answered, ['1'])
  await clock.advance(auditAgainMs)
  assert.deepEqual(idsOf(1), ['1'])
})

test('calls that cannot be stored hold up no response, and are stored later in their order', async () => {
  const { clock, record, end, idsOf, answered } = open()
  record('1')
  await end(away)
  assert.deepEqual(answered, ['1'])
  record('2')
  await settle()
  assert.deepEqual(answered, ['1', '2'])
  await clock.advance(auditAgainMs)
  assert.deepEqual(idsOf(1), ['1', '2'])
  await end()
  record('3')
  await settle()
  assert.deepEqual([idsOf(2), answered], [['3'], ['1', '2']])
  await end()
  assert.deepEqual(answered, ['1', '2', '3'])
})

test('an owner that hangs holds up the first responses for a second, and no others', async () => {
  const { clock, record, answered } = open()
  record('1')
  await clock.advance(auditWaitMs - 1)
  assert.deepEqual(answered, [])
  await clock.advance(1)
  assert.deepEqual(answered, ['1'])
  record('2')
  await settle()
  assert.deepEqual(answered, ['1', '2'])
})

test('the calls that wait have a bound, past which the oldest are lost and counted', async () => {
  const { clock, record, end, idsOf, lost } = open()
  for (let nth = 0; nth < auditWaitingMax + 3; nth++) record(`${nth}`)
  await end(away)
  assert.equal(lost(), 2)
  record('last')
  await clock.advance(auditAgainMs)
  assert.deepEqual([idsOf(1)?.[0], lost()], ['3', 3])
})

test('what waits at the end is sent once more, and lost if that fails', async () => {
  for (const [error, expected] of [
    [undefined, 0],
    [away, 1],
  ] as const) {
    const { writer, record, end, batches, lost } = open()
    record('1')
    await end(away)
    const closed = writer.close()
    await settle()
    await end(error)
    await closed
    assert.deepEqual([batches.length, lost()], [2, expected])
  }
})
