import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientDefaults } from '../../../../clients/typescript/client-options.ts'
import { PostboteClientError } from '../../../../clients/typescript/postbote-client-error.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { lost, openStream, refusal } from '../../../support/producers/open-stream.ts'

const { timeoutMs, retries } = clientDefaults

test('pushes of one turn are sent in one piece, and each gets its own result', async () => {
  const { request, requests, push } = openStream()
  const outcomes = push(['a', 'b', 'c', 'd'])
  assert.equal(requests.length, 0)
  await settle()
  assert.deepEqual(request().takeTexts(), ['a', 'b', 'c', 'd'])
  request().answer({ update_id: 5 }, { filtered: true })
  request().answer(refusal('UNKNOWN_BOT'), { update_id: 5, duplicate: true })
  await settle()
  assert.deepEqual(outcomes, [
    { text: 'a', id: 5 },
    { text: 'b', id: 0 },
    { text: 'c', code: 'UNKNOWN_BOT' },
    { text: 'd', id: 5 },
  ])
})

test('a result says whether its key was pushed before', async () => {
  const { stream, request } = openStream()
  const [first, again] = [1, 2].map(() => stream.push(7, { message: {} }, { idempotencyKey: 'k' }))
  await settle()
  request().take()
  request().answer({ update_id: 5 }, { update_id: 5, duplicate: true })
  assert.deepEqual(await first, { isFiltered: false, updateId: 5, isDuplicate: false })
  assert.deepEqual(await again, { isFiltered: false, updateId: 5, isDuplicate: true })
})

test('the header of a pair has the given options and no others', async () => {
  const { stream, request } = openStream()
  const options = { orderingKey: '4"2', ttlS: 60, isTest: true, idempotencyKey: 'mine' }
  void stream.push(7, { poll: { id: 'x\ny' } }, options)
  void stream.push(8, { message: {} })
  await settle()
  request().take()
  assert.equal(
    request().sent,
    '{"bot_id":7,"ordering_key":"4\\"2","idempotency_key":"mine","ttl":60,"test":true}\n' +
      '{"poll":{"id":"x\\ny"}}\n{"bot_id":8,"idempotency_key":"key-0"}\n{"message":{}}\n',
  )
})

test('pairs without a result when the connection breaks are sent again first, in order, with the same bytes', async () => {
  const { request, requests, push, clock, retried } = openStream()
  const outcomes = push(['a', 'b', 'c'])
  await settle()
  request().take()
  request().answer({ update_id: 1 })
  push(['d'])
  await request().finish(lost())
  assert.equal(requests.length, 1)
  assert.deepEqual([retried[0]!.error.code, retried[0]!.delayMs], ['CONNECTION_LOST', 50])
  await clock.advance(50)
  assert.deepEqual(request().takeTexts(), ['b', 'c', 'd'])
  assert(request(0).sent.endsWith(request().sent.split('\n').slice(0, 4).join('\n') + '\n'))
  request().answer({ update_id: 2, duplicate: true }, { update_id: 3 })
  await settle()
  assert.deepEqual(
    outcomes.map(({ id }) => id),
    [1, 2, 3],
  )
})

test('a request that the server ends normally is no failure, and the rest goes into a new one immediately', async () => {
  const { request, requests, push, retried, clock } = openStream({ hasKeys: false })
  push(['a', 'b'])
  await settle()
  request().take()
  request().answer({ update_id: 1 })
  await request().finish()
  assert.deepEqual(retried, [])
  assert.equal(requests.length, 2)
  assert.deepEqual(request().takeTexts(), ['b'])
  request().answer({ update_id: 2 })
  // When nothing is left, no request is opened.
  await request().finish()
  await clock.advance(60_000)
  assert.equal(requests.length, 2)
  push(['c'])
  await settle()
  assert.deepEqual(request().takeTexts(), ['c'])
})

test('without keys an unknown outcome is reported, and pairs that were certainly not stored are sent again', async () => {
  const { request, push, clock } = openStream({ hasKeys: false })
  const outcomes = push(['a'])
  await settle()
  request().take()
  const later = push(['b'])
  await request().finish(lost())
  assert.equal(outcomes[0]!.code, 'CONNECTION_LOST')
  await clock.advance(50)
  assert.deepEqual(request().takeTexts(), ['b'])
  await request().finish(new PostboteClientError('TOO_MANY_CONNECTIONS'))
  await clock.advance(100)
  assert.deepEqual(request().takeTexts(), ['b'])
  request().answer(refusal('OUTCOME_UNKNOWN'))
  await settle()
  assert.equal(later[0]!.code, 'OUTCOME_UNKNOWN')
})

test('a connection that breaks repeatedly is given up after a limit, with all pairs under way', async () => {
  const { stream, requests, request, push, clock, retried } = openStream()
  const outcomes = push(['a', 'b'])
  await settle()
  for (let attempt = 0; attempt <= retries; attempt++) {
    request().take()
    await request().finish(lost())
    await clock.advance(10_000)
  }
  assert.equal(requests.length, retries + 1)
  assert.equal(retried.length, retries)
  assert.deepEqual(
    outcomes.map(({ code }) => code),
    ['CONNECTION_LOST', 'CONNECTION_LOST'],
  )
  assert.equal(stream.pairsInFlight, 0)
  // The next push starts over.
  push(['c'])
  await settle()
  assert.deepEqual(request().takeTexts(), ['c'])
})

test('each result resets the count of failures', async () => {
  const { request, push, clock, requests } = openStream()
  push(Array.from({ length: 3 * retries }, (_, at) => `${at}`))
  await settle()
  for (let at = 0; at < 3 * retries; at++) {
    request().take()
    request().answer({ update_id: at })
    await request().finish(lost())
    await clock.advance(50)
  }
  assert.equal(requests.length, 3 * retries)
})

test('a server that ends every request without a result is not retried forever', async () => {
  const { request, push, clock, requests } = openStream()
  const outcomes = push(['a'])
  await settle()
  for (let attempt = 0; attempt <= retries; attempt++) {
    request().take()
    await request().finish()
    await clock.advance(10_000)
  }
  assert.equal(outcomes[0]!.code, 'CONNECTION_LOST')
  assert.equal(requests.length, retries + 1)
})

test('a wrong key is reported immediately', async () => {
  const { request, push, retried } = openStream()
  const outcomes = push(['a'])
  await settle()
  await request().finish(new PostboteClientError('UNAUTHORIZED'))
  assert.equal(outcomes[0]!.code, 'UNAUTHORIZED')
  assert.deepEqual(retried, [])
})

test('a server that sends no results that are due is given up for another connection', async () => {
  const { request, push, clock, requests, retried } = openStream()
  push(['a', 'b'])
  await settle()
  request().take()
  await clock.advance(timeoutMs - 1)
  request().answer({ update_id: 1 })
  await clock.advance(timeoutMs - 1)
  assert.equal(requests.length, 1)
  await clock.advance(1)
  assert.equal(retried[0]!.error.code, 'TIMEOUT')
  await clock.advance(50)
  assert.deepEqual(request().takeTexts(), ['b'])
  // The timeout starts with the first pair.
  await clock.advance(timeoutMs + 100)
  assert.equal(requests.length, 3)
  assert.deepEqual(request().takeTexts(), ['b'])
  request().answer({ update_id: 2 })
  // With no result due, the server may be silent for any time.
  await clock.advance(10 * timeoutMs)
  assert.equal(requests.length, 3)
})

for (const code of ['OUTCOME_UNKNOWN', 'STORE_UNAVAILABLE', 'INTERNAL']) {
  test(`a pair that is refused with ${code} is sent again alone, and later pairs of its bot wait for it`, async () => {
    const { request, requests, push, clock } = openStream()
    const [a, b] = push(['a', 'b'])
    push(['x'], 8)
    await settle()
    request().take()
    request().answer(refusal(code))
    push(['c'])
    push(['y'], 8)
    await settle()
    assert.deepEqual(request().takeTexts(), ['y'])
    // This pair is refused, too, while the next one of its bot already waits.
    request().answer(refusal(code), { update_id: 1 })
    await clock.advance(50)
    assert.deepEqual(request().takeTexts(), ['a', 'b', 'c'])
    request().answer({ update_id: 2 }, { update_id: 3 }, { update_id: 4 }, { update_id: 5 })
    await settle()
    assert.deepEqual([a!.id, b!.id], [3, 4])
    assert.equal(requests.length, 1)
  })
}

test('a pair is sent again up to its limit', async () => {
  const { request, push, clock, retried } = openStream()
  const outcomes = push(['a'])
  await settle()
  for (let attempt = 0; attempt <= retries; attempt++) {
    assert.deepEqual(request().takeTexts(), ['a'])
    request().answer(refusal('STORE_UNAVAILABLE'))
    await clock.advance(10_000)
  }
  assert.equal(outcomes[0]!.code, 'STORE_UNAVAILABLE')
  assert.equal(retried.length, retries)
})

for (const code of ['QUEUE_FULL', 'BAD_UPDATE', 'IDEMPOTENCY_MISMATCH', 'TOO_MANY_KEYS']) {
  test(`a pair that is refused with ${code} is not sent again`, async () => {
    const { request, push } = openStream()
    const outcomes = push(['a'])
    await settle()
    request().take()
    request().answer(refusal(code))
    await settle()
    assert.equal(outcomes[0]!.code, code)
  })
}

test('a caller that awaits ready before each push stays within the bounds and continues as results come', async () => {
  const { stream, request } = openStream({ pairsMax: 4 })
  let pushed = 0
  const producer = async (): Promise<void> => {
    for (let nth = 0; nth < 20; nth++) {
      await stream.ready()
      void stream.push(7, { message: {} })
      pushed += 1
    }
  }
  const producers = Promise.all([producer(), producer()])
  let max = 0
  for (let answered = 0; answered < 40; ) {
    await settle()
    max = Math.max(max, stream.pairsInFlight)
    request().take()
    const lines = Math.min(3, stream.pairsInFlight)
    request().answer(...Array.from({ length: lines }, () => ({ update_id: 1 })))
    answered += lines
  }
  await producers
  assert.equal(pushed, 40)
  // There are two producers, and each may exceed the bound by one.
  assert(max >= 4 && max <= 5, `${max}`)
})

test('a free place admits the first caller that waits, and the next one if that one does not push', async () => {
  const { stream, push, request } = openStream({ pairsMax: 2 })
  push(['a', 'b'])
  const letIn: number[] = []
  const wait = async (nth: number): Promise<void> => {
    await stream.ready()
    letIn.push(nth)
    if (nth !== 1) push([`${nth}`])
  }
  const waiting = [wait(1), wait(2), wait(3)]
  await settle()
  request().take()
  request().answer({ update_id: 1 })
  await Promise.all(waiting.slice(0, 2))
  await settle()
  assert.deepEqual(letIn, [1, 2])
  assert.equal(stream.pairsInFlight, 2)
})

test('any number of callers that await ready in one turn stay within the bounds of pairs and bytes', async () => {
  for (const bounds of [{ pairsMax: 10 }, { bytesMax: 5_000 }]) {
    const { stream, request } = openStream(bounds)
    const big = { message: { text: 'x'.repeat(500) } }
    const all = Promise.all(
      Array.from({ length: 200 }, async () => {
        await stream.ready()
        return stream.push(7, big)
      }),
    )
    for (let answered = 0; answered < 200; ) {
      await settle()
      assert(stream.pairsInFlight <= 10, `${stream.pairsInFlight}`)
      const count = request().take().length
      request().answer(...Array.from({ length: count }, () => ({ update_id: 1 })))
      answered += count
    }
    assert.equal((await all).length, 200)
  }
})

test('a caller that waits for room when the stream is closed is released, and its push is rejected', async () => {
  const { stream, push, request } = openStream({ pairsMax: 1 })
  push(['a'])
  const late = Promise.allSettled([1, 2, 3].map(() => stream.ready().then(() => push(['b'])[0])))
  await settle()
  const closed = stream.close()
  request().take()
  request().answer({ update_id: 1 })
  await closed
  for (const each of await late) assert.equal(each.status, 'fulfilled')
})

test('bytes are bounded like pairs', async () => {
  const { stream, request } = openStream({ bytesMax: 1_000 })
  const big = { message: { text: 'x'.repeat(1_000) } }
  await stream.ready()
  void stream.push(7, big)
  let isReady = false
  void stream.ready().then(() => (isReady = true))
  await settle()
  assert.equal(isReady, false)
  request().take()
  request().answer({ update_id: 1 })
  await settle()
  assert.equal(isReady, true)
  assert.equal(stream.bytesUnderWay, 0)
})

test('a caller that never waits is refused past twice the bounds, and nothing of it is sent', async () => {
  const { push, request, stream } = openStream({ pairsMax: 4 })
  const outcomes = push(Array.from({ length: 9 }, (_, at) => `${at}`))
  await settle()
  assert.equal(stream.pairsInFlight, 8)
  assert.equal(outcomes[8]!.code, 'TOO_MANY_UNDER_WAY')
  assert.equal(request().takeTexts().length, 8)
})

test('a pair that may have been stored says so, whatever the last request ended with', async () => {
  const { stream, request, clock } = openStream()
  const pushed = stream.push(7, { message: {} })
  const told = assert.rejects(pushed, { code: 'QUEUE_FULL', isOutcomeUnknown: true })
  await settle()
  request().take()
  await request().finish(lost())
  await clock.advance(50)
  request().take()
  request().answer(refusal('QUEUE_FULL'))
  await told
})

test('a response that is not from the server ends the stream with all pairs under way', async () => {
  const { push, request, requests } = openStream()
  const outcomes = push(['a', 'b'])
  await settle()
  request().take()
  request().answer('<html>', { update_id: 1 }, { update_id: 2 })
  await settle()
  assert.deepEqual([outcomes[0]!.code, outcomes[1]!.id], ['UNEXPECTED_ANSWER', 1])
  // There were more results than pairs, so this connection is not used for another pair.
  push(['c'])
  await settle()
  assert.equal(requests.length, 2)
})

test('an update that is no JSON is refused without harm to the others', async () => {
  const { stream, push, request } = openStream()
  await assert.rejects(stream.push(7, { message: { big: 1n } }), { code: 'BAD_UPDATE' })
  await assert.rejects(stream.push(7, { message: {} }, { ttlS: Number.NaN }), {
    code: 'BAD_REQUEST',
  })
  const outcomes = push(['a'])
  await settle()
  request().take()
  request().answer({ update_id: 1 })
  await settle()
  assert.deepEqual([outcomes[0]!.id, stream.pairsInFlight], [1, 0])
})
