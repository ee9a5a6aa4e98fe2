import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OwnerFeed } from '../../../src/private-api/owner-feed.ts'
import type { StreamPair } from '../../../src/private-api/pair-splitter.ts'
import { ResultBatch } from '../../../src/private-api/result-batch.ts'
import { emptyAnswersMax, ownerWaitsMax } from '../../../src/private-api/limits.ts'
import { FakeOwnerStream } from '../../support/fake-owner-stream.ts'
import { settle } from '../../support/fake-clock.ts'

function pair(name: string): StreamPair {
  const header = name.startsWith('k') ? keyed(name) : `h${name}`
  return pairOf(Buffer.from(`-${header}\nu${name}\n`), 1)
}

/** The header of a pair with a key. */
function keyed(name: string): string {
  return `{"bot_id":100,"idempotency_key":"${name}"}`
}

function pairOf(bytes: Buffer, start: number): StreamPair {
  const headerEnd = bytes.indexOf('\n', start)
  const end = bytes.indexOf('\n', headerEnd + 1)
  return { bytes, start, headerEnd, updateStart: headerEnd + 1, end, tooLarge: undefined }
}

/** A feed, the streams that it has opened, and a batch for each pair. */
function setUp() {
  const streams: FakeOwnerStream[] = []
  const repeats: boolean[] = []
  const owner = { hangs: 0, refused: [] as string[] }
  const feed = new OwnerFeed({
    open: (isRepeat) => {
      repeats.push(isRepeat)
      const stream = new FakeOwnerStream()
      streams.push(stream)
      return stream
    },
    hangs: () => owner.hangs,
    refused: (code) => void owner.refused.push(code),
  })
  const batches = new Map<string, ResultBatch>()
  const add = (...names: string[]): Promise<void> => {
    for (const name of names) {
      const batch = new ResultBatch({ pairs: 1, bytes: 0 }, () => undefined)
      batches.set(name, batch)
      feed.add(pair(name), { batch, index: 0 })
    }
    return feed.flush()
  }
  const outcomes = (): string =>
    [...batches]
      .map(([name, batch]) => `${name}:${batch.isComplete ? batch.text().trim() : '-'}`)
      .join(' ')
  return { feed, owner, streams, repeats, batches, add, outcomes }
}

const unknown = '{"error":{"code":"OUTCOME_UNKNOWN"'
const unavailable = '{"error":{"code":"STORE_UNAVAILABLE"'

test('pairs are sent unchanged and results come back in their order, however they are split', async () => {
  const { streams, add, outcomes } = setUp()
  await add('1', '2')
  await add('3')
  assert.equal(streams.length, 1)
  assert.equal(streams[0]?.written, 'h1\nu1\nh2\nu2\nh3\nu3\n')
  const response = streams[0].answer()
  response.push('one\ntw')
  await settle()
  assert.equal(outcomes(), '1:one 2:- 3:-')
  response.push('o\nthree\n')
  await settle()
  assert.equal(outcomes(), '1:one 2:two 3:three')
})

test('a flush waits until the owner accepts more', async () => {
  const { streams, add } = setUp()
  await add('1')
  streams[0]!.isFull = true
  const log: string[] = []
  const flushed = add('2').then(() => log.push('flushed'))
  await settle()
  assert.deepEqual(log, [])
  streams[0]!.drain()
  await flushed
})

test('the loss of an owner leaves the outcome of its open pairs unknown, and the next pair finds the successor', async () => {
  const { streams, add, outcomes } = setUp()
  await add('1', '2')
  const response = streams[0]!.answer()
  response.push('one\n')
  await settle()
  response.destroy(new Error('aborted'))
  await settle()
  assert(outcomes().startsWith(`1:one 2:${unknown}`))
  assert.equal(streams[0]?.isDestroyed, true)
  await add('3')
  assert.equal(streams[1]?.written, 'h3\nu3\n')
})

test('pairs with a key go to the successor of a lost owner, in their order and before later ones', async () => {
  const { feed, streams, repeats, add, outcomes } = setUp()
  await add('k1', '2', 'k3')
  const response = streams[0]!.answer()
  response.push('one\n')
  await settle()
  await add('k4')
  response.destroy(new Error('aborted'))
  await settle()
  assert(outcomes().startsWith(`k1:one 2:${unknown}`))
  assert.equal(streams[1]?.written, `${keyed('k3')}\nuk3\n${keyed('k4')}\nuk4\n`)
  assert.deepEqual(repeats, [false, true])
  await add('5')
  feed.end()
  assert.equal(streams[1].isEnded, true)
  streams[1].answer().push('three\nfour\nfive\n')
  await settle()
  assert(outcomes().endsWith('k3:three k4:four 5:five'))
})

test('a pair that has met three lost owners is not sent to a fourth', async () => {
  const { owner, streams, add, outcomes } = setUp()
  await add('k1')
  for (const at of [0, 1, 2]) {
    streams[at]!.refuse('OUTCOME_UNKNOWN')
    await settle()
  }
  assert.equal(streams.length, 3)
  assert(outcomes().startsWith(`k1:${unknown}`))
  assert.deepEqual(owner.refused, ['OUTCOME_UNKNOWN'], 'counted once')
})

test('pairs that were sent to an owner that hung and was killed are not sent again, with a key or without', async () => {
  for (const hasAnswered of [true, false]) {
    const { feed, owner, streams, repeats, batches, add, outcomes } = setUp()
    await add('k1', 'k2', '3')
    if (hasAnswered) streams[0]!.answer().push('one\n')
    await settle()
    // A pair that was not written before the owner was lost cannot be the reason.
    const batch = new ResultBatch({ pairs: 1, bytes: 0 }, () => undefined)
    batches.set('4', batch)
    feed.add(pair('4'), { batch, index: 0 })
    owner.hangs += 1
    if (hasAnswered) (await streams[0]!.response).body.destroy(new Error('aborted'))
    else streams[0]!.refuse('OUTCOME_UNKNOWN')
    await settle()
    const first = hasAnswered ? 'one' : `${unknown}.*`
    assert.match(outcomes(), new RegExp(`^k1:${first} k2:${unknown}.* 3:${unknown}.* 4:-$`))
    assert.equal(streams[1]?.written, 'h4\nu4\n')
    assert.deepEqual(repeats, [false, true])
    await add('k5')
    // Another process hung, so what this one leaves unknown is sent again.
    streams[1].refuse('OUTCOME_UNKNOWN')
    await settle()
    assert.equal(streams[2]?.written, `${keyed('k5')}\nuk5\n`)
  }
})

test('a header that only seems to have a key is not sent again', async () => {
  const { streams, feed } = setUp()
  const batch = new ResultBatch({ pairs: 3, bytes: 0 }, () => undefined)
  const headers = [
    '{"bot_id":100,"ordering_key":"\\"idempotency_key\\""}',
    '{"bot_id":100,"idempotency_key":null}',
    '{"bot_id":100,"idempotency_key":""}',
  ]
  for (const [index, header] of headers.entries()) {
    feed.add(pairOf(Buffer.from(`${header}\n{}\n`), 0), { batch, index })
  }
  await feed.flush()
  streams[0]!.refuse('OUTCOME_UNKNOWN')
  await settle()
  assert.equal(streams.length, 1)
  assert.equal(batch.isComplete, true)
})

test('an owner that refuses or cannot be reached has stored nothing', async () => {
  const { feed, streams, add, outcomes } = setUp()
  await add('1')
  streams[0]!.answer(403)
  await settle()
  assert(outcomes().startsWith(`1:${unavailable}`))
  await add('2')
  feed.end()
  streams[1]!.refuse('STORE_UNAVAILABLE')
  await settle()
  assert(outcomes().includes(`2:${unavailable}`))
})

test('an owner that cannot be reached is waited for, so that pairs keep their order, but not forever', async () => {
  const { streams, add, outcomes } = setUp()
  await add('1')
  streams[0]!.refuse('STORE_UNAVAILABLE')
  await settle()
  await add('2')
  assert.equal(streams[1]?.written, 'h1\nu1\nh2\nu2\n')
  streams[1].answer().push('one\ntwo\n')
  await settle()
  assert.equal(outcomes(), '1:one 2:two')
})

test('an owner that stays away is not waited for repeatedly', async () => {
  const { streams, add, outcomes } = setUp()
  await add('1')
  for (let times = 0; times < ownerWaitsMax; times++) {
    assert.equal(outcomes(), '1:-')
    streams[times]!.refuse('STORE_UNAVAILABLE')
    await settle()
  }
  assert(outcomes().startsWith(`1:${unavailable}`))
  assert.equal(streams.length, ownerWaitsMax)
  await add('2')
  streams[ownerWaitsMax]!.refuse('STORE_UNAVAILABLE')
  await settle()
  assert(outcomes().includes(`2:${unavailable}`))
})

test('an owner that was reached in between is waited for as long as at first', async () => {
  const { streams, add, outcomes } = setUp()
  const stayAway = async (times: number): Promise<void> => {
    for (let nth = 0; nth < times; nth++) {
      streams.at(-1)!.refuse('STORE_UNAVAILABLE')
      await settle()
    }
  }
  await add('1')
  await stayAway(ownerWaitsMax - 1)
  const response = streams.at(-1)!.answer()
  response.push('one\n')
  response.push(null)
  await settle()
  await add('2')
  await stayAway(ownerWaitsMax - 1)
  assert.equal(outcomes(), '1:one 2:-')
  await stayAway(1)
  assert(outcomes().startsWith(`1:one 2:${unavailable}`))
})

test('a pair that a lost owner may have taken is not reported as unstored if its successor cannot be reached', async () => {
  const { feed, streams, add, outcomes } = setUp()
  await add('k1')
  streams[0]!.refuse('OUTCOME_UNKNOWN')
  await settle()
  await add('2')
  feed.end()
  streams[1]!.refuse('STORE_UNAVAILABLE')
  await settle()
  assert.match(outcomes(), new RegExp(`^k1:${unknown}.* 2:${unavailable}`))
})

test('pairs that a replaced owner did not take go to its successor before later ones', async () => {
  const { feed, streams, add, outcomes } = setUp()
  await add('1', '2', '3')
  const response = streams[0]!.answer()
  response.push('one\n')
  response.push(null)
  await settle()
  assert.equal(streams.length, 2)
  await add('4')
  assert.equal(streams[1]?.written, 'h2\nu2\nh3\nu3\nh4\nu4\n')
  feed.end()
  assert.equal(streams[1].isEnded, true)
  streams[1].answer().push('two\nthree\nfour\n')
  await settle()
  assert.equal(outcomes(), '1:one 2:two 3:three 4:four')
})

test('a feed that has ended ends its stream to the successor, too', async () => {
  const { feed, streams, add } = setUp()
  await add('1', '2')
  feed.end()
  const response = streams[0]!.answer()
  response.push('one\n')
  response.push(null)
  await settle()
  assert.equal(streams[1]?.written, 'h2\nu2\n')
  assert.equal(streams[1].isEnded, true)
})

test('an owner that never responds is not asked repeatedly', async () => {
  const { streams, add, outcomes } = setUp()
  await add('1')
  // It may be replaced at that moment, and its successor, too.
  for (let times = 0; times <= emptyAnswersMax; times++) {
    assert.equal(streams.length, times + 1)
    streams[times]!.answer().push(null)
    await settle()
  }
  assert.equal(streams.length, emptyAnswersMax + 1)
  assert(outcomes().startsWith(`1:${unavailable}`))
})

test('an owner that ends between pairs causes no loss', async () => {
  const { streams, add, outcomes } = setUp()
  await add('1')
  const response = streams[0]!.answer()
  response.push('one\n')
  response.push(null)
  await settle()
  assert.equal(streams.length, 1)
  await add('2')
  streams[1]!.answer().push('two\n')
  await settle()
  assert.equal(outcomes(), '1:one 2:two')
})

test('pairs within one chunk are sent unchanged, whatever is between them', async () => {
  const { feed, streams } = setUp()
  const chunk = Buffer.from('h1\nu1\nh2\r\nu2\nother\nother\nh3\nu3\n\nh4\nu4\n')
  for (const start of [0, 6, 25, 32]) {
    const batch = new ResultBatch({ pairs: 1, bytes: 0 }, () => undefined)
    feed.add(pairOf(chunk, start), { batch, index: 0 })
  }
  await feed.flush()
  assert.equal(streams[0]?.written, 'h1\nu1\nh2\r\nu2\nh3\nu3\nh4\nu4\n')
})
