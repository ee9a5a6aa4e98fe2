import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addDeadSums,
  deadGroupsMax,
  DeadLetterSums,
  diedOf,
  errorClassOf,
  groupQueuesMax,
  lettersSummedMax,
  sumDeadLetters,
  type SummedShard,
  sumInTurn,
} from '../../../../src/features/look-back/dead-letter-sums.ts'
import { updateIdEnd } from '../../../../src/shard/records/record-keys.ts'
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

/** A shard of one queue with so many letters, and how many of them were read. */
function shardWith(letters: number): SummedShard & { read: number } {
  const shard = {
    read: 0,
    clock: { nowMs: () => 1 },
    lists: {
      deadLetters: ({ after }: { readonly after?: unknown }) =>
        Promise.resolve(after === undefined ? [{ queue: 11, updateId: 1 }] : []),
    },
    readDeadLetters({ from, limit }: { readonly from: number; readonly limit: number }) {
      const count = Math.min(limit, Math.max(0, letters - from))
      shard.read += count
      const deadLetters = Array.from({ length: count }, (_, nth) => letter(from + nth, 'no', 1))
      const next = from + count < letters ? from + count : updateIdEnd
      return Promise.resolve({ deadLetters, damagedIds: [], next })
    },
  }
  return shard
}

test('of one letter more than a look may have, all others are summed, and the sums say that they are of a part', async () => {
  const bounds = { lettersMax: lettersSummedMax }
  const all = await sumDeadLetters(shardWith(lettersSummedMax), bounds)
  assert.deepEqual([all.count, all.isComplete], [lettersSummedMax, true])
  const shard = shardWith(lettersSummedMax + 1)
  const part = await sumDeadLetters(shard, bounds)
  assert.deepEqual([part.count, part.isComplete], [lettersSummedMax, false])
  assert.equal(shard.read, lettersSummedMax)
})

test('the shards of a worker have one bound together', async () => {
  const shards = [shardWith(lettersSummedMax - 5), shardWith(20), shardWith(1)]
  const summed = await sumInTurn(shards, (_, sums) => Promise.resolve({ sums }))
  assert.deepEqual(
    summed.map(({ sums }) => [sums.count, sums.isComplete]),
    [
      [lettersSummedMax - 5, true],
      [5, false],
      [0, false],
    ],
  )
  assert.equal(
    shards.reduce((sum, { read }) => sum + read, 0),
    lettersSummedMax,
  )
})
