import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addDeadSums,
  deadGroupsMax,
  DeadLetterSums,
  diedOf,
  errorClassOf,
  groupQueuesMax,
} from '../../../../src/features/look-back/dead-letter-sums.ts'
import type { StoredDeadLetter } from '../../../../src/shard/records/stored-records.ts'

function letter(updateId: number, lastError: string, leftAtMs = 0): StoredDeadLetter {
  return {
    updateId,
    lastError,
    leftAtMs,
    typeNumber: 0,
    reason: 'refused',
    acceptedAtS: 0,
    attempts: 1,
    orderingKey: '',
    text: Buffer.from('"message":{}'),
  }
}

test('the class of an error is without what differs between two letters', () => {
  const status = 'Wrong response from the webhook: 503 Service Unavailable'
  assert.equal(errorClassOf(status), '503 Service Unavailable')
  assert.equal(
    errorClassOf('Wrong response from the webhook: 401 Unauthorized (is it?)'),
    '401 Unauthorized',
  )
  assert.equal(errorClassOf('no route to 10.0.0.1:443'), errorClassOf('no route to 10.0.0.2:80'))
  assert.equal(errorClassOf('after 30001 ms'), errorClassOf('after 30999 ms'))
  assert.equal(errorClassOf(''), '')
})

test('letters are summed by reason, over queues and shards, the most first', () => {
  const [a, b] = [new DeadLetterSums(), new DeadLetterSums()]
  a.add(11, letter(1, 'Connection refused', 5_000))
  a.add(11, letter(2, 'Connection refused', 9_000))
  a.add(12, letter(1, 'Connection timed out', 7_000))
  b.add(13, letter(7, 'Connection refused', 1_000))
  const { groups, count, isComplete } = addDeadSums([a.sums(), b.sums()])
  assert.deepEqual([count, isComplete], [4, true])
  const [first, second] = groups
  assert.deepEqual(
    [first?.error, first?.count, first?.bots, first?.oldestMs, first?.newestMs],
    ['Connection refused', 3, 2, 1_000, 9_000],
  )
  assert.deepEqual(first?.queues[0], { queue: 11, count: 2, updateId: 2, newestMs: 9_000 })
  assert.equal(second?.error, 'Connection timed out')
})

test('sums are bounded, and say that they are of a part', () => {
  const sums = new DeadLetterSums()
  for (let nth = 0; nth <= deadGroupsMax; nth++) sums.add(11, letter(1, `error ${nth}`))
  assert.equal(sums.sums().groups.length, deadGroupsMax)
  assert.equal(sums.sums().isComplete, false)
  const many = new DeadLetterSums()
  for (let bot = 0; bot <= groupQueuesMax; bot++) many.add(bot, letter(1, 'x'))
  assert.equal(many.sums().groups[0]?.bots, groupQueuesMax + 1)
  assert.equal(many.sums().groups[0]?.queues.length, groupQueuesMax)
})

test('a selection by reason finds the letters of the group', () => {
  const isMeant = diedOf({ reason: 'refused', error: '503 Service Unavailable' })
  const of = letter(1, 'Wrong response from the webhook: 503 Service Unavailable')
  assert.equal(isMeant?.(of), true)
  assert.equal(isMeant?.({ ...of, reason: 'expired' }), false)
  assert.equal(isMeant?.(letter(1, 'Connection refused')), false)
  assert.equal(diedOf({ error: '' })?.(letter(1, '')), true)
  assert.equal(diedOf({}), undefined)
})
