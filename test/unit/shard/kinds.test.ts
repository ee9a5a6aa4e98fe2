import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allKinds,
  copiedKey,
  copyKey,
  damagedCopy,
  kindOf,
  kinds,
} from '../../../src/shard/kinds.ts'
import { idPart, queueIdOf, queuePart } from '../../../src/shard/records/record-keys.ts'
import { RecordKind } from '../../../src/shard/records/record-kind.ts'
import { ofJson } from '../../../src/shard/records/record.ts'

const queue = queueIdOf(123, true)

test('no two kinds have one letter, and none has that of the copies', () => {
  const letters = [...allKinds.map(({ row }) => row.letter), damagedCopy.letter]
  assert.equal(new Set(letters).size, letters.length)
  assert.equal(damagedCopy.letter.charCodeAt(0), damagedCopy.prefix)
})

test('a row is all that a new kind of record needs for its keys, ranges, operations and words', () => {
  const toys = new RecordKind({
    letter: 't',
    key: [queuePart, idPart('toyId')],
    codec: ofJson<{ readonly color: string }>(),
    name: 'toy',
    says: 'a toy',
    lost: 'the toy is gone',
  })
  const put = toys.put({ color: 'red' }, queue, 7)
  assert(put.type === 'put')
  assert.equal(put.key.toString('hex'), '74010000000000007b0000000000000007')
  assert.deepEqual(toys.fields(put.key), { queue, toyId: 7 })
  assert.deepEqual(toys.row.codec.decode(put), { color: 'red' })
  assert.deepEqual(toys.del(queue, 7), { type: 'del', key: put.key })
  assert.equal(toys.queueOf(put.key), queue)
  assert.equal(toys.words(put.key), ' 7 of bot 123 (/test/)')
  const { gte, lt } = toys.range(queue)
  assert.deepEqual(
    [gte.toString('hex'), lt.toString('hex')],
    ['74010000000000007b', '74010000000000007c'],
  )
  assert.deepEqual(toys.range(), { gte: Buffer.from('t'), lt: Buffer.from('u') })
})

test('a range ends after the last key that begins with its values, whatever bytes these have', () => {
  const { lt } = kinds.settings.range(queueIdOf(255, false))
  assert.equal(lt.toString('hex'), '770000000000000100')
})

test('the kind of a key is known by its letter and its length', () => {
  const key = kinds.update.key(queue, 7)
  assert.equal(kindOf(key), kinds.update)
  assert.equal(kindOf(key.subarray(1)), undefined)
  assert.equal(kindOf(key.subarray(0, -1)), undefined)
  assert.deepEqual(copiedKey(copyKey(key)), key)
  assert.equal(copiedKey(key), undefined)
})
