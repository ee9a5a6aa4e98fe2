/** Polls of a server whose lease is over for a while. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from '../../support/store/memory-store.ts'
import type { RangeOptions, StoreEntry } from '../../../src/store/store.ts'
import { first, Polls } from '../../support/bots/polls.ts'

test('without a lease nothing is returned before the deadline of a poll, and updates follow when it is valid again', async () => {
  const polls = await Polls.open()
  await polls.life.push(2)
  polls.isLeaseValid = false
  polls.call('short')
  await polls.advance(2_000)
  polls.call('long', { timeoutMs: 5_000 })
  await polls.advance(3_000)
  assert.deepEqual(polls.log, ['short: [] at 1000'])
  polls.isLeaseValid = true
  await polls.advance(50)
  assert.deepEqual(polls.log.slice(1), ['long: [0 1] at 5050'])
  await polls.advance(1_000)
  polls.isLeaseValid = false
  polls.call('over', { timeoutMs: 4_000 })
  await polls.advance(4_000)
  assert.deepEqual(polls.log.slice(2), ['over: [] at 10050'])
  assert.equal(polls.life.clock.timers, 0)
})

test('a poll that waits gets what is pushed while the lease is over only afterward', async () => {
  const polls = await Polls.open()
  polls.call('a', { timeoutMs: 50_000 })
  await polls.advance(1_000)
  polls.isLeaseValid = false
  await polls.life.push(1)
  await polls.advance(1_000)
  assert.deepEqual(polls.log, [])
  polls.isLeaseValid = true
  await polls.advance(51)
  assert.match(polls.log.join(), /^a: \[0\] at 20\d\d$/)
})

test('a poll that wants no wait gets its updates if the lease is valid again soon', async () => {
  const polls = await Polls.open()
  await polls.life.push(1)
  polls.isLeaseValid = false
  polls.call('short')
  await polls.advance(400)
  assert.deepEqual(polls.log, [])
  polls.isLeaseValid = true
  await polls.advance(50)
  assert.deepEqual(polls.log, ['short: [0] at 450'])
})

/** A store whose reads of ranges are stuck until the test lets them go on. */
class StuckStore extends MemoryStore {
  #resume: () => void = () => undefined
  #stuck: Promise<void> | undefined

  stick(): void {
    this.#stuck = new Promise((resolve) => (this.#resume = resolve))
  }

  resume(): void {
    this.#resume()
    this.#stuck = undefined
  }

  override async range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    await this.#stuck
    return super.range(options)
  }
}

/** Polls of a queue whose updates are all in the store only. */
async function unreadPolls(updates: number): Promise<{ polls: Polls; store: StuckStore }> {
  const store = new StuckStore()
  const polls = await Polls.open({ store, windowBytes: 0 })
  await polls.life.push(updates)
  store.stick()
  return { polls, store }
}

test('a poll waits for a read that is stuck until its timeout, but a second at least, and then says that it does not know', async () => {
  const { polls, store } = await unreadPolls(3)
  polls.isLeaseValid = false
  polls.call('short')
  await polls.advance(1_000)
  assert.deepEqual(polls.log, ['short: STORE_UNAVAILABLE at 1000'])
  await polls.advance(3_000)
  polls.call('long', { timeoutMs: 5_000 })
  await polls.advance(5_000)
  assert.deepEqual(polls.log.slice(1), ['long: STORE_UNAVAILABLE at 9000'])
  // The reads end long after their polls, and lose nothing.
  store.resume()
  await polls.advance(3_000)
  polls.isLeaseValid = true
  polls.call('next')
  await polls.advance(0)
  assert.deepEqual(polls.log.slice(2), ['next: [0 1 2] at 12000'])
  assert.equal(polls.poller.isWaiting, false)
  assert.equal(polls.life.clock.timers, 0)
})

test('a read that is only slow is waited for while there is a lease', async () => {
  const { polls, store } = await unreadPolls(2)
  polls.call('slow')
  await polls.advance(1_900)
  assert.deepEqual(polls.log, [])
  store.resume()
  await polls.advance(0)
  assert.deepEqual(polls.log, ['slow: [0 1] at 1900'])
  const { polls: others } = await unreadPolls(2)
  others.call('cut off')
  await others.advance(1_400)
  others.isLeaseValid = false
  await others.advance(50)
  assert.deepEqual(others.log, ['cut off: STORE_UNAVAILABLE at 1450'])
})

test('a waiting poll whose updates must be read at its timeout ends a second later', async () => {
  const { polls } = await unreadPolls(0)
  polls.call('waiting', { timeoutMs: 5_000 })
  await polls.advance(4_999)
  await polls.life.push(1)
  await polls.advance(1)
  polls.isLeaseValid = false
  await polls.advance(1_100)
  assert.deepEqual(polls.log, ['waiting: STORE_UNAVAILABLE at 5999'])
})

test('a poll that must read to find its offset, or to count what it confirms, ends in time, too', async () => {
  const { polls } = await unreadPolls(3)
  polls.isLeaseValid = false
  polls.call('newest', { offset: -2 })
  await polls.advance(1_000)
  polls.call('confirm', { offset: first + 2, timeoutMs: 3_000 })
  await polls.advance(3_000)
  assert.deepEqual(polls.log, [
    'newest: STORE_UNAVAILABLE at 1000',
    'confirm: STORE_UNAVAILABLE at 4000',
  ])
})
