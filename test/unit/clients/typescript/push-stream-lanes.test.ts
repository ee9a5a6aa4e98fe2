/** A stream at a server that tells its groups of shards. With eight shards, the bots 101 to 104 have 5, 0, 4 and 7. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { clientDefaults } from '../../../../clients/typescript/client-options.ts'
import { PostboteClientError } from '../../../../clients/typescript/postbote-client-error.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { lost, openStream, refusal } from '../../../support/producers/open-stream.ts'

const { timeoutMs, retries } = clientDefaults
const groups = [
  [0, 1, 2, 3],
  [4, 5, 6, 7],
] as const
/** The bot 101 has another worker now, and 103 the same. */
const moved = [
  [0, 1, 2, 3, 5],
  [4, 6, 7],
] as const

/** A stream with its groups, whose requests end as those of a server do: after the results. */
function openLanes(options: Parameters<typeof openStream>[0] = {}) {
  const opened = openStream({ endsLate: true, ...options })
  opened.groups.set(...groups)
  return opened
}

test('each pair goes over the connection of its group, which is opened with the first one', async () => {
  const { push, requestFor, shardsNamed } = openLanes()
  const outcomes = [...push(['a'], 101), ...push(['b'], 103), ...push(['c'], 104)]
  await settle()
  assert.deepEqual(shardsNamed(), [4])
  assert.deepEqual(requestFor(4).takeTexts(), ['a', 'b', 'c'])
  outcomes.push(...push(['d'], 102))
  await settle()
  assert.deepEqual(shardsNamed(), [4, 0])
  assert.deepEqual(requestFor(0).takeTexts(), ['d'])
  // Each has its results in its own order.
  requestFor(0).answer({ update_id: 9 })
  requestFor(4).answer({ update_id: 1 }, { update_id: 2 }, { update_id: 3 })
  await settle()
  assert.deepEqual(
    outcomes.map(({ id }) => id),
    [1, 2, 3, 9],
  )
})

test('pairs of shards that are in no group go over a connection that names none', async () => {
  const { groups: of, push, shardsNamed, requestFor } = openStream()
  of.set([0], [4])
  push(['a'], 102)
  push(['b'], 104)
  await settle()
  assert.deepEqual(shardsNamed(), [0, undefined])
  assert.deepEqual(requestFor().takeTexts(), ['b'])
})

test('the bounds are those of all connections together', async () => {
  const { stream, push, requestFor } = openLanes({ pairsMax: 4 })
  push(['a', 'b'], 101)
  push(['c', 'd'], 102)
  let isReady = false
  void stream.ready().then(() => (isReady = true))
  await settle()
  assert.deepEqual([stream.pairsInFlight, isReady], [4, false])
  push(['e', 'f', 'g', 'h'], 101)
  const [refused] = push(['i'], 102)
  await settle()
  assert.equal(refused!.code, 'TOO_MANY_UNDER_WAY')
  requestFor(4).take()
  requestFor(0).take()
  requestFor(4).answer(...Array.from({ length: 6 }, () => ({ update_id: 1 })))
  await settle()
  assert.equal(isReady, true)
})

test('when the groups change, all results come before a bot has another connection', async () => {
  const { groups: of, push, requestFor, shardsNamed } = openLanes()
  push(['a'], 101)
  push(['b'], 102)
  await settle()
  requestFor(4).take()
  requestFor(0).take()
  of.set(...moved)
  push(['c'], 101)
  push(['d'], 103)
  push(['e'], 102)
  await settle()
  // Nothing more is taken, and both requests are ended.
  assert.deepEqual(requestFor(4).take(), [])
  assert.deepEqual([requestFor(4).isEnded, requestFor(0).isEnded], [true, true])
  requestFor(0).answer({ update_id: 1 })
  await requestFor(0).finish()
  push(['f'], 101)
  await settle()
  assert.deepEqual(shardsNamed(), [4, 0])
  requestFor(4).answer({ update_id: 1 })
  await requestFor(4).finish()
  assert.deepEqual(shardsNamed(), [4, 0, 0, 4])
  assert.deepEqual(requestFor(0).takeTexts(), ['c', 'e', 'f'])
  assert.deepEqual(requestFor(4).takeTexts(), ['d'])
})

test('pairs that are lost while the groups change are sent again before later ones of their bot', async () => {
  const { groups: of, push, requestFor, retried } = openLanes()
  push(['a', 'b'], 101)
  await settle()
  requestFor(4).take()
  requestFor(4).answer({ update_id: 1 })
  of.set(...moved)
  push(['c'], 101)
  await settle()
  assert.deepEqual(requestFor(4).take(), [])
  push(['d'], 101)
  await requestFor(4).finish(lost())
  assert.deepEqual(
    retried.map(({ error }) => error.code),
    ['CONNECTION_LOST'],
  )
  assert.deepEqual(requestFor(0).takeTexts(), ['b', 'c', 'd'])
})

test('a server that does not end a request for other groups is given up for new connections', async () => {
  const { groups: of, push, requestFor, clock, shardsNamed } = openLanes()
  push(['a'], 101)
  await settle()
  requestFor(4).take()
  requestFor(4).answer({ update_id: 1 })
  of.set(...moved)
  push(['b'], 101)
  await settle()
  assert.deepEqual(requestFor(4).take(), [])
  await clock.advance(timeoutMs - 1)
  assert.deepEqual(shardsNamed(), [4])
  await clock.advance(1)
  assert.deepEqual(requestFor(0).takeTexts(), ['b'])
})

test('a refused pair is sent again over the connection that its bot has by then', async () => {
  const { groups: of, push, requestFor, clock } = openLanes()
  push(['a'], 101)
  await settle()
  requestFor(4).take()
  requestFor(4).answer(refusal('STORE_UNAVAILABLE'))
  of.set(...moved)
  push(['b'], 103)
  await settle()
  assert.deepEqual(requestFor(4).take(), [])
  await requestFor(4).finish()
  push(['c'], 101)
  await clock.advance(50)
  assert.deepEqual(requestFor(0).takeTexts(), ['a', 'c'])
  assert.deepEqual(requestFor(4).takeTexts(), ['b'])
})

test('a server that refuses requests with a shard gets all pairs over one without, and nobody is told', async () => {
  const { push, requestFor, shardsNamed, retried } = openLanes()
  push(['a'], 101)
  push(['b'], 102)
  await settle()
  requestFor(4).take()
  await requestFor(4).finish(new PostboteClientError('BAD_REQUEST'))
  await requestFor(0).finish(new PostboteClientError('BAD_REQUEST'))
  assert.deepEqual(shardsNamed(), [4, 0, undefined])
  assert.deepEqual(requestFor().takeTexts(), ['a', 'b'])
  assert.deepEqual(retried, [])
  // Without a shard it is the last word.
  const [c] = push(['c'], 101)
  await requestFor().finish(new PostboteClientError('BAD_REQUEST'))
  assert.equal(c!.code, 'BAD_REQUEST')
})

test('a wrong key fails the pairs of its connection immediately', async () => {
  const { push, requestFor } = openLanes()
  const [[a], [b]] = [push(['a'], 101), push(['b'], 102)] as const
  await settle()
  await requestFor(4).finish(new PostboteClientError('UNAUTHORIZED'))
  assert.deepEqual([a!.code, b!.code], ['UNAUTHORIZED', undefined])
})

test('a connection that is given up fails its own pairs, held ones included', async () => {
  const { push, requestFor, clock } = openLanes()
  const [a] = push(['a'], 101)
  const [b] = push(['b'], 102)
  const [c] = push(['c'], 103)
  await settle()
  requestFor(0).take()
  requestFor(0).answer(refusal('STORE_UNAVAILABLE'))
  requestFor(4).take()
  requestFor(4).answer(refusal('STORE_UNAVAILABLE'))
  await requestFor(4).finish(new PostboteClientError('UNAUTHORIZED'))
  assert.deepEqual([a!.code, b!.code, c!.code], ['UNAUTHORIZED', undefined, 'UNAUTHORIZED'])
  await clock.advance(50)
  assert.deepEqual(requestFor(0).takeTexts(), ['b'])
})

test('a server that is not reached for its groups is one that is not reached', async () => {
  const { groups: of, push, clock, shardsNamed, retried } = openStream()
  const failed = new PostboteClientError('CONNECTION_FAILED')
  of.reading = Promise.resolve(failed)
  const [a] = push(['a'])
  await clock.advance(1_000_000)
  assert.equal(a!.code, 'CONNECTION_FAILED')
  assert.equal(retried.length, retries)
  assert.deepEqual(shardsNamed(), [])
})

test('groups that change each time do not have a server tried forever', async () => {
  const { groups: of, push, requests, clock } = openStream()
  const [a] = push(['a'], 101)
  for (let attempt = 0; attempt < 5 * retries && a!.code === undefined; attempt++) {
    of.set(...(attempt % 2 === 0 ? groups : moved))
    await clock.advance(10_000)
    await requests.at(-1)?.finish(lost())
    await clock.advance(10_000)
  }
  assert.equal(a!.code, 'CONNECTION_LOST')
  assert.equal(requests.length, retries + 1)
})

test('close waits for the results of every connection, and ends each', async () => {
  const { stream, push, requestFor, requests, closings } = openLanes({ endsLate: false })
  push(['a'], 101)
  push(['b'], 102)
  await settle()
  requestFor(4).take()
  requestFor(0).take()
  const closed = stream.close()
  requestFor(4).answer({ update_id: 1 })
  await settle()
  assert.equal(closings(), 0)
  requestFor(0).answer({ update_id: 1 })
  await closed
  assert(requests.every(({ isEnded }) => isEnded))
})

test('close gives up what waits for the groups, and for other groups', async () => {
  for (const isDealing of [false, true]) {
    const { stream, groups: of, push, requestFor, requests, clock } = openLanes()
    const answered = new EventEmitter()
    const reading = once(answered, 'answered').then(() => undefined)
    if (!isDealing) of.reading = reading
    const outcomes = push(['a'], 101)
    await settle()
    if (isDealing) {
      requestFor(4).take()
      of.set(...moved)
      outcomes.push(...push(['b'], 101))
      assert.deepEqual(requestFor(4).take(), [])
    }
    const closed = stream.close({ timeoutMs: 10 })
    await clock.advance(10)
    await closed
    answered.emit('answered')
    await settle()
    assert.deepEqual([...new Set(outcomes.map(({ code }) => code))], ['CLOSED'])
    assert.deepEqual([requests.length, clock.timers], [isDealing ? 1 : 0, 0])
  }
})
