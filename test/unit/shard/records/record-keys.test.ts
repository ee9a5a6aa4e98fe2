import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { kinds } from '../../../../src/shard/kinds.ts'
import * as keys from '../../../../src/shard/records/record-keys.ts'

const botIds = fc.integer({ min: 100, max: 2 ** 52 - 1 })

/** docs/inside/storage.md shows these bytes. They are stored permanently. */
test('the keys have their documented bytes', () => {
  const main = keys.queueIdOf(123_456_789, false)
  const testQueue = keys.queueIdOf(2 ** 52 - 1, true)
  assert.equal(
    kinds.update.key(main, 2_000_001).toString('hex'),
    '7500000000075bcd1500000000001e8481',
  )
  assert.equal(
    kinds.update.key(testQueue, 2 ** 31 - 2).toString('hex'),
    '75010fffffffffffff000000007ffffffe',
  )
  assert.equal(
    kinds.deadLetter.key(main, 2_000_001).toString('hex'),
    '6400000000075bcd1500000000001e8481',
  )
  assert.equal(kinds.bot.key(main).toString('hex'), '6200000000075bcd15')
  assert.equal(kinds.settings.key(testQueue).toString('hex'), '77010fffffffffffff')
  assert.equal(kinds.state.key(main).toString('hex'), '7300000000075bcd15')
  assert.equal(kinds.expiry.key(30_000_000, main).toString('hex'), '7801c9c38000000000075bcd15')
  assert.equal(
    kinds.idempotencyKey.key(41_666, main, '0123456789abcdé\xff').toString('hex'),
    '690000a2c200000000075bcd153031323334353637383961626364e9ff',
  )
  assert.equal(kinds.idempotencyKey.start(41_666).toString('hex'), '690000a2c2')
  assert.equal(kinds.expiry.start().toString('hex'), '78')
  assert.equal(kinds.expiry.range().lt.toString('hex'), '79')
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
        assert.equal(keys.queueIdOfKey(kinds.state.key(queue)), queue)
        assert.equal(keys.updateIdOfKey(kinds.update.key(queue, n)), n)
        assert.equal(keys.updateIdOfKey(kinds.deadLetter.key(queue, n)), n)
        assert.deepEqual(kinds.expiry.fields(kinds.expiry.key(n, queue)), { minute: n, queue })
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
      assert.equal(Buffer.compare(kinds.bot.key(a), kinds.bot.key(b)), byQueue)
      const inQueue = byQueue || Math.sign(idA - idB)
      assert.equal(Buffer.compare(kinds.update.key(a, idA), kinds.update.key(b, idB)), inQueue)
      const byMinute = Math.sign(idA - idB) || byQueue
      assert.equal(Buffer.compare(kinds.expiry.key(idA, a), kinds.expiry.key(idB, b)), byMinute)
      assert(Buffer.compare(kinds.update.start(), kinds.update.key(a, idA)) < 0)
      assert(Buffer.compare(kinds.update.key(a, idA), kinds.update.range().lt) < 0)
      assert(Buffer.compare(kinds.state.key(a), keys.keyAfter(kinds.state.key(a))) < 0)
    }),
  )
})
