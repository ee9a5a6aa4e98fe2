import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientDefaults } from '../../../../clients/typescript/client-options.ts'
import { PostboteClientError } from '../../../../clients/typescript/postbote-client-error.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { lost, openStream, refusal } from '../../../support/producers/open-stream.ts'

const { timeoutMs } = clientDefaults

test('close waits for every result, even across a broken connection, and then accepts no more', async () => {
  const { stream, push, request, clock, closings } = openStream()
  const outcomes = push(['a'])
  await settle()
  request().take()
  let isClosed = false
  const closed = stream.close().then(() => (isClosed = true))
  await request().finish(lost())
  await clock.advance(50)
  assert.deepEqual([isClosed, request().takeTexts()], [false, ['a']])
  request().answer({ update_id: 1 })
  await closed
  assert.deepEqual([request().isEnded, outcomes[0]!.id, closings()], [true, 1, 1])
  const [late] = push(['b'])
  await stream.ready()
  await settle()
  assert.equal(late!.code, 'CLOSED')
})

test('close gives up pushes without a result in time, and says which may have been stored', async () => {
  const { stream, push, request, requests, clock, closings } = openStream()
  const codes: unknown[] = []
  const track = (text: string): void => {
    stream.push(7, { message: { text } }).catch((error: unknown) => {
      assert(error instanceof PostboteClientError)
      codes.push([text, error.code, error.isOutcomeUnknown])
    })
  }
  for (const text of ['lost', 'refused', 'sent']) track(text)
  await settle()
  request().take()
  await request().finish(lost())
  await clock.advance(50)
  assert.deepEqual(request().takeTexts(), ['lost', 'refused', 'sent'])
  push(['other'], 8)
  track('behind')
  await settle()
  const closed = stream.close()
  await clock.advance(timeoutMs - 1)
  assert.deepEqual([codes, closings()], [[], 0])
  await clock.advance(1)
  await closed
  assert.deepEqual(codes, [
    ['lost', 'CLOSED', true],
    ['refused', 'CLOSED', true],
    ['sent', 'CLOSED', true],
    ['behind', 'CLOSED', false],
  ])
  assert.deepEqual([closings(), clock.timers, stream.pairsInFlight], [1, 0, 0])
  await clock.advance(60_000)
  assert.equal(requests.length, 2)
})

test('close ends the wait for the next request and that of refused pairs', async () => {
  const { stream, push, request, requests, clock } = openStream()
  const outcomes = push(['a', 'b'])
  await settle()
  request().take()
  request().answer(refusal('STORE_UNAVAILABLE'))
  await request().finish(lost())
  const closed = stream.close({ timeoutMs: 0 })
  await clock.advance(0)
  await closed
  assert.deepEqual(
    outcomes.map(({ code }) => code),
    ['CLOSED', 'CLOSED'],
  )
  await clock.advance(60_000)
  assert.deepEqual([requests.length, clock.timers], [1, 0])
})
