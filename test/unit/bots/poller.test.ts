import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientPresence } from '../../../src/bots/poller.ts'
import { pollPauseWithinMs } from '../../../src/queue/poll.ts'
import { settle } from '../../support/kit/fake-clock.ts'

import { first, Polls } from '../../support/bots/polls.ts'

test('pending updates are returned immediately, in order, and again until they are confirmed', async () => {
  const polls = await Polls.open()
  await polls.life.push(3)
  polls.call('a', { timeoutMs: 50_000 })
  await polls.advance(4_000)
  polls.call('b', { limit: 2, timeoutMs: 50_000 })
  polls.call('c', { offset: first + 2 })
  polls.call('d', { offset: first + 3 })
  assert.deepEqual(polls.log, [
    'a: [0 1 2] at 0',
    'b: [0 1] at 4000',
    'c: [2] at 4000',
    'd: [] at 4000',
  ])
  assert.equal(polls.life.queue.pendingCount, 0)
})

test('a poll without updates waits and is woken at once by an update that comes alone', async () => {
  const polls = await Polls.open()
  polls.call('a', { timeoutMs: 50_000 })
  assert.equal(polls.poller.isWaiting, true)
  await polls.advance(10_000)
  await polls.life.push(2)
  await settle()
  assert.deepEqual(polls.log, ['a: [0 1] at 10000'])
  assert.equal(polls.life.clock.timers, 0)
  polls.call('b', { offset: first + 2, timeoutMs: 50_000 })
  await polls.advance(pollPauseWithinMs)
  await polls.life.push(1)
  await settle()
  assert.deepEqual(polls.log[1], `b: [2] at ${10_000 + pollPauseWithinMs}`)
})

test('an update that follows another one within 10 ms wakes a poll 1 ms after the last push', async () => {
  const polls = await Polls.open()
  await polls.advance(10_000)
  await polls.life.push(1)
  polls.call('a', { offset: first + 1, timeoutMs: 50_000 })
  await polls.advance(pollPauseWithinMs - 1)
  await polls.life.push(1)
  assert.deepEqual(polls.log, [])
  await polls.advance(0.5)
  await polls.life.push(1)
  await polls.advance(0.9)
  assert.deepEqual(polls.log, [])
  await polls.advance(0.1)
  assert.deepEqual(polls.log, ['a: [1 2] at 10011'])
  assert.equal(polls.poller.isWaiting, false)
})

test('continuous pushes delay a waiting poll by 2 ms at most', async () => {
  const polls = await Polls.open()
  await polls.life.push(1)
  polls.call('a', { offset: first + 1, timeoutMs: 50_000 })
  for (let count = 0; count < 4; count++) {
    await polls.life.push(1)
    await polls.advance(0.6)
  }
  assert.deepEqual(polls.log, ['a: [1 2 3 4] at 2'])
})

test('a waiting poll returns an empty list at its deadline', async () => {
  const polls = await Polls.open()
  polls.call('a', { timeoutMs: 7_000 })
  await polls.advance(60_000)
  assert.deepEqual(polls.log, ['a: [] at 7000'])
  polls.call('b')
  assert.deepEqual(polls.log[1], 'b: [] at 60000')
})

test('an update that expires before the poll is woken is not returned', async () => {
  const polls = await Polls.open()
  polls.call('a', { timeoutMs: 7_000 })
  await polls.life.push(1, 0)
  await polls.advance(60_000)
  assert.deepEqual(polls.log, ['a: [] at 7000'])
})

test('a poll with the previous offset waits at least 3 s, and within 0.5 s returns one update', async () => {
  const polls = await Polls.open()
  polls.call('a')
  polls.call('b')
  await polls.advance(2_999)
  assert.deepEqual(polls.log, ['a: [] at 0'])
  await polls.advance(1)
  assert.deepEqual(polls.log[1], 'b: [] at 3000')
  await polls.life.push(3)
  await polls.advance(3_000)
  polls.call('c')
  await polls.advance(499)
  polls.call('d')
  await polls.advance(500)
  polls.call('e')
  polls.call('f', { offset: -3 })
  await polls.advance(10)
  assert.deepEqual(polls.log.slice(2), [
    'c: [0 1 2] at 6000',
    'd: [0] at 6499',
    'e: [0 1 2] at 6999',
    'f: [0 1 2] at 6999',
  ])
})

test('a refused call does not count as the previous one', async () => {
  const polls = await Polls.open()
  polls.isWebhookActive = true
  polls.call('a')
  await settle()
  polls.isWebhookActive = false
  polls.call('b')
  assert.deepEqual(polls.log, ['a: WEBHOOK_ACTIVE at 0', 'b: [] at 0'])
})

test('the newer poll wins, even if it returns immediately', async () => {
  const polls = await Polls.open()
  polls.call('a', { timeoutMs: 50_000 })
  await polls.advance(10)
  polls.call('b', { offset: first, timeoutMs: 50_000 })
  await polls.advance(10)
  polls.call('c', { offset: -1 })
  await polls.advance(4_000)
  assert.deepEqual(polls.log, [
    'a: POLL_TERMINATED at 10',
    'c: [] at 20',
    'b: POLL_TERMINATED at 3020',
  ])
})

test('a call with an older offset is refused after 3 s and changes nothing', async () => {
  const polls = await Polls.open()
  await polls.life.push(2)
  polls.call('waiting', { offset: first + 2, timeoutMs: 50_000 })
  assert.equal(polls.poller.isWaiting, true)
  polls.call('older', { offset: first + 1, allowedTypes: 7, timeoutMs: 50_000 })
  await polls.advance(3_000)
  assert.deepEqual(polls.log, ['older: POLL_TERMINATED at 3000'])
  assert.deepEqual(polls.types, [])
  assert.equal(polls.poller.isWaiting, true)
  // Its offset differs from the previous one, so this call does not have to wait.
  await polls.life.push(1)
  await polls.advance(5)
  assert.equal(polls.log[1], 'waiting: [2] at 3000')
  polls.call('next', { offset: first + 1 })
  assert.equal(polls.log[2], 'next: [2] at 3005')
})

test('offsets of 0 and far offsets are compared as the positions that they stand for', async () => {
  const polls = await Polls.open()
  polls.call('a', { offset: 0, timeoutMs: 50_000 })
  polls.call('b', { offset: 2 ** 40, timeoutMs: 50_000 })
  await settle()
  polls.call('c', { offset: 1, timeoutMs: 50_000 })
  await settle()
  polls.call('d', { offset: -5, timeoutMs: 50_000 })
  await polls.advance(1)
  assert.deepEqual(polls.log, ['a: POLL_TERMINATED at 0'])
  assert.equal(polls.poller.isWaiting, true)
})

test('an active webhook refuses polls, and a new webhook ends the waiting poll', async () => {
  const polls = await Polls.open()
  polls.call('a', { timeoutMs: 50_000 })
  polls.isWebhookActive = true
  polls.poller.terminate()
  await settle()
  polls.call('b', { offset: -1 })
  await polls.advance(3_000)
  assert.deepEqual(polls.log, ['a: POLL_TERMINATED_BY_WEBHOOK at 0', 'b: WEBHOOK_ACTIVE at 3000'])
  assert.deepEqual(polls.conflicts, ['webhook_set', 'webhook_active'])
})

test('a webhook that is set while an offset is looked up refuses the poll before it confirms anything', async () => {
  const polls = await Polls.open()
  await polls.life.push(3)
  polls.call('a', { offset: -1, allowedTypes: 5 })
  polls.isWebhookActive = true
  await polls.advance(1)
  assert.deepEqual(polls.log, ['a: WEBHOOK_ACTIVE at 0'])
  assert.equal(polls.life.queue.pendingCount, 3)
  assert.deepEqual(polls.types, [])
})

test('a webhook that is set while allowed_updates are written ends the poll that would wait', async () => {
  const polls = await Polls.open()
  polls.settling = Promise.resolve()
  polls.call('a', { allowedTypes: 5, timeoutMs: 50_000 })
  polls.isWebhookActive = true
  await polls.advance(1)
  assert.deepEqual(polls.log, ['a: POLL_TERMINATED_BY_WEBHOOK at 0'])
})

test('of two calls that are still being prepared the newer one waits', async () => {
  const polls = await Polls.open()
  const settled = new AbortController()
  polls.settling = new Promise((resolve) => {
    settled.signal.addEventListener('abort', () => resolve())
  })
  polls.call('a', { allowedTypes: 5, timeoutMs: 50_000 })
  polls.settling = undefined
  polls.call('b', { timeoutMs: 50_000 })
  settled.abort()
  await polls.advance(1)
  assert.deepEqual(polls.log, ['a: POLL_TERMINATED at 0'])
  assert.equal(polls.poller.isWaiting, true)
})

test('a client that disconnects frees its poll, and the updates that it did not confirm are returned again', async () => {
  const polls = await Polls.open()
  const presence: ClientPresence = { onGone: undefined }
  polls.call('a', { timeoutMs: 50_000 }, presence)
  presence.onGone?.()
  await settle()
  assert.equal(polls.poller.isWaiting, false)
  assert.equal(presence.onGone, undefined)
  assert.equal(polls.life.clock.timers, 0)
  await polls.life.push(1)
  await polls.advance(4_000)
  polls.call('b')
  assert.deepEqual(polls.log, ['a: [] at 0', 'b: [0] at 4000'])
})

test('a poll whose client disconnects while it is prepared never waits', async () => {
  const polls = await Polls.open()
  const presence: ClientPresence = { onGone: undefined }
  polls.call('a', { offset: -1, timeoutMs: 50_000 }, presence)
  presence.isGone = true
  await settle()
  assert.equal(polls.poller.isWaiting, false)
  assert.deepEqual(polls.log, ['a: [] at 0'])
})

test('a negative offset keeps only the newest updates, durably', async () => {
  const polls = await Polls.open()
  await polls.life.push(5)
  polls.call('a', { offset: -2 })
  await polls.advance(1)
  assert.deepEqual(polls.log, ['a: [3 4] at 0'])
  assert.equal(polls.life.queue.pendingCount, 2)
  assert.equal(polls.life.counters.counts.updates_dropped, 3)
})

test('updates that are only on disk are returned, too, and counted as at most one waiting poll', async () => {
  const polls = await Polls.open({ windowBytes: 0 })
  polls.call('a', { timeoutMs: 50_000 })
  await polls.life.push(3)
  await polls.advance(5)
  assert.deepEqual(polls.log, ['a: [0 1 2] at 0'])
  assert.equal(polls.life.counters.counts.polls_waiting, 0)
})

test('a drain ends the waiting poll and every later one with an empty list and without delays', async () => {
  const polls = await Polls.open()
  polls.call('a', { timeoutMs: 50_000 })
  polls.call('b', { offset: first, timeoutMs: 50_000 })
  polls.call('c', { offset: first, timeoutMs: 50_000 })
  polls.poller.drain()
  polls.call('d', { timeoutMs: 50_000 })
  await settle()
  assert.deepEqual(polls.log.toSorted(), [
    'a: POLL_TERMINATED at 0',
    'b: POLL_TERMINATED at 0',
    'c: [] at 0',
    'd: [] at 0',
  ])
  assert.equal(polls.life.clock.timers, 0)
})

test('a store that cannot be read refuses only the poll that needs it', async () => {
  const polls = await Polls.open({ windowBytes: 0 })
  await polls.life.push(3)
  await polls.life.life.shard.close()
  polls.call('a')
  await settle()
  assert.deepEqual(polls.log, ['a: STORE_UNAVAILABLE at 0'])
})

test('a waiting poll ends with its token, immediately even if refusals are paced', async () => {
  const polls = await Polls.open()
  polls.call('waiting', { timeoutMs: 50_000 })
  await settle()
  // The only refusal within three seconds that is sent immediately.
  await polls.pacer.pace({ alwaysDelayed: false })
  polls.poller.revoke()
  await settle()
  assert.deepEqual(polls.log, ['waiting: UNKNOWN_TOKEN at 0'])
  polls.poller.revoke()
  polls.call('next', { timeoutMs: 10_000 })
  await polls.advance(10_000)
  assert.deepEqual(polls.log.slice(1), ['next: [] at 10000'])
})

test('no poll waits past the end of a token that runs out', async () => {
  const polls = await Polls.open()
  polls.tokenEndsInMs = 4_000
  polls.call('long', { timeoutMs: 50_000 })
  await polls.advance(4_000)
  polls.tokenEndsInMs = Infinity
  polls.call('next', { offset: 1, timeoutMs: 10_000 })
  await polls.advance(10_000)
  assert.deepEqual(polls.log, ['long: [] at 4000', 'next: [] at 14000'])
})

test('a poll that is still reading when all polls are ended does not begin to wait', async () => {
  const polls = await Polls.open()
  const going: (() => void)[] = []
  polls.settling = new Promise((resolve) => going.push(resolve))
  polls.call('reading', { timeoutMs: 50_000, allowedTypes: 1 })
  polls.poller.end()
  for (const go of going) go()
  await settle()
  assert.deepEqual(polls.log, ['reading: [] at 0'])
})

test('polls that take over end the waiting one with an empty list at once, whatever their offsets, and none gets 409', async () => {
  const polls = await Polls.open()
  polls.takesOver = true
  await polls.life.push(2)
  polls.call('old', { offset: first + 2, timeoutMs: 50_000 })
  await polls.advance(10_000)
  polls.call('new', { offset: first, timeoutMs: 50_000 })
  await settle()
  assert.deepEqual(polls.log, ['old: [] at 10000'])
  assert.equal(polls.poller.isWaiting, true)
  await polls.life.push(1)
  await settle()
  assert.deepEqual(polls.log.slice(1), ['new: [2] at 10000'])
  assert.equal(polls.life.queue.pendingCount, 1)
  assert.deepEqual(polls.conflicts, [])
  assert.equal(polls.poller.fight, undefined)
  assert.equal(polls.life.clock.timers, 0)
})

test('updates that wake a poll in the moment of a takeover are in the answer of the later one alone', async () => {
  const polls = await Polls.open()
  polls.takesOver = true
  await polls.life.push(1)
  polls.call('old', { offset: first + 1, timeoutMs: 50_000 })
  await polls.life.push(1)
  // The old one pauses for further updates.
  assert.equal(polls.poller.isWaiting, true)
  polls.call('new', { offset: first + 1, limit: 5, timeoutMs: 50_000 })
  await polls.advance(5_000)
  assert.deepEqual(polls.log, ['new: [1] at 0', 'old: [] at 0'])
  // An answer that the older one has already is confirmed by nobody else: the later one gets it again.
  polls.call('later', { timeoutMs: 50_000 })
  assert.deepEqual(polls.log.slice(2), ['later: [1] at 5000'])
})

test('a poll that takes over confirms what its offset says, once', async () => {
  const polls = await Polls.open()
  polls.takesOver = true
  await polls.life.push(3)
  polls.call('old', { offset: first + 3, timeoutMs: 50_000 })
  await polls.life.push(0)
  polls.call('behind', { offset: first + 1, timeoutMs: 50_000 })
  await polls.advance(10)
  await polls.life.push(2)
  await polls.advance(10)
  assert.deepEqual(polls.log, ['old: [] at 0', 'behind: [3 4] at 10'])
  assert.equal(polls.life.queue.pendingCount, 2)
  assert.equal(polls.life.counters.counts.updates_confirmed, 3)
})

test('two programs whose polls take over from each other call twice in 3 s, and the poller tells for how long', async () => {
  const polls = await Polls.open()
  polls.takesOver = true
  let calls = 0
  const state = { isOver: false }
  // Each polls again as soon as it has its answer.
  const program = async (): Promise<void> => {
    while (!state.isOver) {
      calls += 1
      const presence = { onGone: undefined }
      const request = { offset: 0, limit: 100, timeoutMs: 50_000, allowedTypes: undefined }
      await polls.poller.poll(request, presence)
    }
  }
  void program()
  void program()
  await polls.advance(60_000)
  assert.ok(calls <= 2 + 2 * 21, `${calls} calls`)
  assert.ok(calls >= 30, `${calls} calls`)
  const { forMs = 0, lastMinute = 0 } = polls.poller.fight ?? {}
  assert.ok(forMs > 50_000)
  assert.ok(lastMinute >= 30, `${lastMinute} takeovers`)
  assert.deepEqual(polls.conflicts, [])
  state.isOver = true
  polls.poller.drain()
})

test('a poll that still reads from disk when a later one takes over gets an empty list, too', async () => {
  const polls = await Polls.open()
  polls.takesOver = true
  polls.settling = Promise.resolve()
  polls.call('reading', { allowedTypes: 1, timeoutMs: 50_000 })
  polls.settling = undefined
  polls.call('new', { offset: first, timeoutMs: 50_000 })
  await settle()
  assert.deepEqual(polls.log, ['reading: [] at 0'])
  assert.equal(polls.poller.isWaiting, true)
})

test('the poller tells of updates that polls get again and again, until they are confirmed', async () => {
  const polls = await Polls.open()
  await polls.life.push(3)
  polls.call('first', { offset: 0, timeoutMs: 0 })
  await settle()
  assert.equal(polls.poller.repeated, undefined, 'once is no repetition')
  await polls.advance(60_000)
  polls.call('second', { offset: 0, limit: 1, timeoutMs: 0 })
  await settle()
  assert.deepEqual(polls.poller.repeated, { times: 2, firstBeforeMs: 60_000, lastBeforeMs: 0 })
  polls.call('confirms one', { offset: first + 1, timeoutMs: 0 })
  await settle()
  assert.equal(polls.poller.repeated, undefined)
})

test('refusals of two programs are counted, and a single one is none', async () => {
  const polls = await Polls.open()
  const presence = { onGone: undefined }
  const request = { offset: 0, limit: 100, timeoutMs: 50_000, allowedTypes: undefined }
  const call = (): void => void Promise.resolve(polls.poller.poll(request, presence)).catch(() => 0)
  call()
  call()
  await polls.advance(5_000)
  assert.equal(polls.poller.fight, undefined, 'a program was started again')
  for (let round = 0; round < 3; round++) {
    call()
    await polls.advance(38_000)
  }
  assert.deepEqual(polls.poller.fight, { kind: 'refusal', forMs: 81_000, lastMinute: 1 })
  await polls.advance(60_000)
  assert.equal(polls.poller.fight, undefined)
  polls.poller.drain()
})

test('polls that confirm none repeat themselves, whatever expires meanwhile, and whatever their limit is', async () => {
  const polls = await Polls.open()
  const times = (): number | undefined => polls.poller.repeated?.times
  await polls.life.push(1, 30)
  await polls.life.push(5)
  for (const [nth, limit] of [3, 100, 1, 2].entries()) {
    polls.call(`${nth}`, { offset: 0, limit, timeoutMs: 0 })
    await polls.advance(20_000)
  }
  assert.equal(times(), 4)
  polls.call('confirms some', { offset: first + 3, timeoutMs: 0 })
  await settle()
  assert.equal(times(), undefined)
  for (let nth = 0; nth < 3; nth++) polls.call(`again ${nth}`, { offset: first + 3, timeoutMs: 0 })
  await settle()
  assert.equal(times(), 4)
  polls.call('drops', { offset: -1, timeoutMs: 0 })
  await settle()
  assert.equal(times(), undefined)
  polls.call('drops nothing', { offset: -1, timeoutMs: 0 })
  await settle()
  assert.equal(times(), 2, 'the last update comes again and again')
})

test('what expires while somebody polls is told, and what expires while nobody does is not', async () => {
  const polls = await Polls.open()
  polls.call('polls')
  for (let minute = 0; minute < 3; minute++) {
    polls.poller.expired(2)
    polls.call(`${minute}`)
    await polls.advance(60_000)
  }
  assert.deepEqual(polls.poller.expiring, { count: 6, forMs: 120_000 })
  await polls.advance(10 * 60_000)
  assert.equal(polls.poller.expiring, undefined)
  polls.poller.expired(1)
  assert.equal(polls.poller.expiring, undefined)
})

test('a poll with nothing to give reads the clock once', async (t) => {
  const polls = await Polls.open()
  const monotonic = t.mock.method(polls.life.clock, 'monotonicMs')
  const wall = t.mock.method(polls.life.clock, 'nowMs')
  polls.poller.poll(
    { offset: 0, limit: 100, timeoutMs: 0, allowedTypes: undefined },
    { onGone: undefined },
  )
  assert.deepEqual([monotonic.mock.callCount(), wall.mock.callCount()], [1, 0])
})
