import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FeedTo, OwnerFeed } from '../../../../src/features/ingest/owner-feed.ts'
import { readHeaders } from '../../../../src/features/ingest/pair-header.ts'
import { PairSplitter } from '../../../../src/features/ingest/pair-splitter.ts'
import type { UpdateRows } from '../../../../src/shard/update-rows.ts'
import { ResultBatch } from '../../../../src/features/ingest/result-batch.ts'
import { ownerWaitMs, ownerWaitMsMax } from '../../../../src/api/limits.ts'
import { ShardMoves } from '../../../../src/links/owner-wait.ts'
import { FakeOwnerStream } from '../../../support/network/fake-owner-stream.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'

function pair(name: string): UpdateRows {
  const header = name.startsWith('k') ? keyed(name) : `h${name}`
  return rowsOf(`${header}\nu${name}\n`)
}

/** The header of a pair with a key. */
function keyed(name: string): string {
  return `{"bot_id":100,"idempotency_key":"${name}"}`
}

/** Returns pairs as rows. */
function rowsOf(lines: string): UpdateRows {
  const [rows] = new PairSplitter({ updateLineBytesMax: 1_000 }).feed(Buffer.from(lines))
  readHeaders(rows!, 1_000)
  return rows!
}

/** A feed, the streams that it has opened, and a batch for each pair. */
function setUp() {
  const streams: FakeOwnerStream[] = []
  const repeats: boolean[] = []
  const owner = { hangs: 0, refused: [] as string[] }
  const clock = new FakeClock()
  const to: FeedTo = {
    open: (isRepeat) => {
      repeats.push(isRepeat)
      const stream = new FakeOwnerStream()
      streams.push(stream)
      return stream
    },
    hangs: () => owner.hangs,
    refused: (code) => void owner.refused.push(code),
  }
  const feed = new OwnerFeed(to, clock)
  /** The owner of the last stream cannot be reached for this long. */
  const stayAway = async (ms: number): Promise<void> => {
    await clock.advance(ms)
    streams.at(-1)!.refuse('STORE_UNAVAILABLE')
    await settle()
  }
  /** The owner of the last stream says for this long that another one opens the shard. */
  const move = async (ms: number): Promise<void> => {
    await clock.advance(ms)
    streams.at(-1)!.fail(new ShardMoves(new Error('elsewhere')))
    await settle()
  }
  const batches = new Map<string, ResultBatch>()
  const add = (...names: string[]): Promise<void> => {
    for (const name of names) {
      const batch = new ResultBatch({ pairs: 1, bytes: 0 }, () => undefined)
      batches.set(name, batch)
      feed.add({ rows: pair(name), nth: 0, batch })
    }
    return feed.flush()
  }
  const outcomes = (): string =>
    [...batches]
      .map(([name, batch]) => `${name}:${batch.isComplete ? batch.text().trim() : '-'}`)
      .join(' ')
  return { feed, owner, clock, streams, repeats, batches, add, outcomes, stayAway, move }
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
    feed.add({ rows: pair('4'), nth: 0, batch })
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
  const rows = rowsOf(headers.map((header) => `${header}\n{}\n`).join(''))
  for (const nth of headers.keys()) feed.add({ rows, nth, batch })
  await feed.flush()
  streams[0]!.refuse('OUTCOME_UNKNOWN')
  await settle()
  assert.equal(streams.length, 1)
  assert.equal(batch.isComplete, true)
})

test('an owner that refuses, or cannot be reached for too long, has stored nothing', async () => {
  const { feed, streams, add, outcomes, stayAway } = setUp()
  await add('1')
  streams[0]!.answer(403)
  await settle()
  assert(outcomes().startsWith(`1:${unavailable}`))
  await add('2')
  feed.end()
  await stayAway(ownerWaitMs)
  assert(outcomes().includes(`2:${unavailable}`))
})

test('an owner that cannot be reached is asked again after a pause, so that pairs keep their order', async () => {
  const { streams, repeats, add, outcomes, stayAway } = setUp()
  await add('1')
  await stayAway(0)
  await add('2')
  assert.equal(streams[1]?.written, 'h1\nu1\nh2\nu2\n')
  assert.deepEqual(repeats, [false, true])
  streams[1].answer().push('one\ntwo\n')
  await settle()
  assert.equal(outcomes(), '1:one 2:two')
})

for (const [stream, waitMs] of [
  ['an open stream', ownerWaitMsMax],
  ['a stream that the producer has ended', ownerWaitMs],
] as const) {
  test(`the pairs of ${stream} wait for an owner, however often one is asked, but not forever`, async () => {
    const { feed, streams, add, outcomes, stayAway } = setUp()
    await add('1')
    if (waitMs === ownerWaitMs) feed.end()
    // The last one has left, and the next one has not come.
    for (let times = 0; times < 10; times++) await stayAway(waitMs / 10 - 1)
    assert.equal(outcomes(), '1:-')
    // One that leaves at once has not taken them, either.
    streams.at(-1)!.answer().push(null)
    await settle()
    assert.equal(outcomes(), '1:-')
    await stayAway(10)
    assert(outcomes().startsWith(`1:${unavailable}`))
    assert.equal(streams.length, 12)
  })
}

test('the pairs of a stream that the producer has ended follow a shard that moves, but not forever', async () => {
  const { feed, add, outcomes, move, stayAway } = setUp()
  await add('1')
  feed.end()
  for (let waitedMs = 0; waitedMs < ownerWaitMsMax - ownerWaitMs; waitedMs += 2_000) {
    await move(2_000)
  }
  assert.equal(outcomes(), '1:-')
  // Nobody says anything from now on.
  await stayAway(ownerWaitMs - 1)
  assert.equal(outcomes(), '1:-')
  await stayAway(1)
  assert(outcomes().startsWith(`1:${unavailable}`))
})

test('pairs go at once to an owner that the last one has named, and after a pause to one that was asked already', async () => {
  const { add, streams, repeats } = setUp()
  await add('1')
  for (const isElsewhere of [true, false]) {
    streams.at(-1)!.fail(new ShardMoves(new Error('elsewhere'), isElsewhere))
    await settle()
  }
  assert.deepEqual(repeats, [false, false, true])
})

test('an owner that has taken pairs in between is waited for as long as at first', async () => {
  const { streams, add, outcomes, stayAway } = setUp()
  await add('1')
  await stayAway(ownerWaitMsMax - 1)
  const response = streams.at(-1)!.answer()
  response.push('one\n')
  response.push(null)
  await settle()
  await add('2')
  await stayAway(ownerWaitMsMax - 1)
  assert.equal(outcomes(), '1:one 2:-')
  await stayAway(1)
  assert(outcomes().startsWith(`1:one 2:${unavailable}`))
})

test('a feed is idle when all of its pairs have a result', async () => {
  const { feed, streams, add, stayAway } = setUp()
  assert(feed.isIdle)
  await add('1', '2')
  await stayAway(0)
  const response = streams[1]!.answer()
  response.push('one\n')
  await settle()
  assert(!feed.isIdle)
  response.push('two\n')
  await settle()
  assert(feed.isIdle)
})

test('a pair that a lost owner may have taken is not reported as unstored if its successor cannot be reached', async () => {
  const { feed, streams, add, outcomes, stayAway } = setUp()
  await add('k1')
  streams[0]!.refuse('OUTCOME_UNKNOWN')
  await settle()
  await add('2')
  feed.end()
  await stayAway(ownerWaitMs)
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
  const rows = rowsOf('h1\nu1\nh2\r\nu2\nother\nother\nh3\nu3\n\nh4\nu4\n')
  const batch = new ResultBatch({ pairs: rows.count, bytes: 0 }, () => undefined)
  for (const nth of [0, 1, 3, 4]) feed.add({ rows, nth, batch })
  await feed.flush()
  assert.equal(streams[0]?.written, 'h1\nu1\nh2\r\nu2\nh3\nu3\nh4\nu4\n')
})
