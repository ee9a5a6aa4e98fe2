import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import * as keys from '../../../../src/shard/records/record-keys.ts'

const botIds = fc.integer({ min: 100, max: 2 ** 52 - 1 })

/** docs/inside/storage.md shows these bytes. They are stored permanently. */
test('the keys have their documented bytes', () => {
  const main = keys.queueIdOf(123_456_789, false)
  const testQueue = keys.queueIdOf(2 ** 52 - 1, true)
  assert.equal(
    keys.updateKey(main, 2_000_001).toString('hex'),
    '7500000000075bcd1500000000001e8481',
  )
  assert.equal(
    keys.updateKey(testQueue, 2 ** 31 - 2).toString('hex'),
    '75010fffffffffffff000000007ffffffe',
  )
  assert.equal(
    keys.deadLetterKey(main, 2_000_001).toString('hex'),
    '6400000000075bcd1500000000001e8481',
  )
  assert.equal(keys.queueKey('b', main).toString('hex'), '6200000000075bcd15')
  assert.equal(keys.queueKey('w', testQueue).toString('hex'), '77010fffffffffffff')
  assert.equal(keys.queueKey('s', main).toString('hex'), '7300000000075bcd15')
  assert.equal(keys.expiryKey(30_000_000, main).toString('hex'), '7801c9c38000000000075bcd15')
  assert.equal(
    keys.idempotencyKey(41_666, main, '0123456789abcdé\xff').toString('hex'),
    '690000a2c200000000075bcd153031323334353637383961626364e9ff',
  )
  assert.equal(keys.startOfHalfDay(41_666).toString('hex'), '690000a2c2')
  assert.equal(keys.startOf('x').toString('hex'), '78')
  assert.equal(keys.endOf('x').toString('hex'), '79')
})

test('a parsed key has the values that it was made of', () => {
  fc.assert(
    fc.property(
      botIds,
      fc.boolean(),
      fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      (botId, isTest, n) => {
        const queue = keys.queueIdOf(botId, isTest)
        assert.equal(keys.botIdOf(queue), botId)
        assert.equal(keys.isTestQueue(queue), isTest)
        assert.equal(keys.queueIdOfKey(keys.queueKey('s', queue)), queue)
        assert.equal(keys.updateIdOfKey(keys.updateKey(queue, n)), n)
        assert.equal(keys.updateIdOfKey(keys.deadLetterKey(queue, n)), n)
        assert.deepEqual(keys.parseExpiryKey(keys.expiryKey(n, queue)), { minute: n, queue })
      },
    ),
  )
})

test('keys are ordered by their numbers, with all keys of one kind together', () => {
  const numbers = fc.tuple(botIds, fc.boolean(), fc.integer({ min: 0, max: 2 ** 32 - 1 }))
  fc.assert(
    fc.property(numbers, numbers, ([botA, testA, idA], [botB, testB, idB]) => {
      const a = keys.queueIdOf(botA, testA)
      const b = keys.queueIdOf(botB, testB)
      const byQueue = Math.sign(a - b)
      assert.equal(Buffer.compare(keys.queueKey('b', a), keys.queueKey('b', b)), byQueue)
      const inQueue = byQueue || Math.sign(idA - idB)
      assert.equal(Buffer.compare(keys.updateKey(a, idA), keys.updateKey(b, idB)), inQueue)
      const byMinute = Math.sign(idA - idB) || byQueue
      assert.equal(Buffer.compare(keys.expiryKey(idA, a), keys.expiryKey(idB, b)), byMinute)
      assert(Buffer.compare(keys.startOf('u'), keys.updateKey(a, idA)) < 0)
      assert(Buffer.compare(keys.updateKey(a, idA), keys.endOf('u')) < 0)
      assert(Buffer.compare(keys.queueKey('s', a), keys.keyAfter(keys.queueKey('s', a))) < 0)
    }),
  )
})
