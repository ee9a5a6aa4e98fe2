/** Polls of a server whose lease is over for a while. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Polls } from '../../support/polls.ts'

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
