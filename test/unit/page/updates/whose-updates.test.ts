import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whoseUpdates } from '../../../../src/page/updates/whose-updates.ts'

test('a bare id is that of a chat or a user, and a path or a word is an ordering key', () => {
  assert.deepEqual(whoseUpdates(''), {})
  assert.deepEqual(whoseUpdates(' 7003 '), { user: '7003' })
  assert.deepEqual(whoseUpdates('-1001234567890123456'), { user: '-1001234567890123456' })
  assert.deepEqual(whoseUpdates('chat.id=-7003'), { ordering_key: 'chat.id=-7003' })
  assert.deepEqual(whoseUpdates('=order 17'), { ordering_key: '=order 17' })
  const word = whoseUpdates('order-17')
  assert.equal(word.ordering_key, 'order-17')
  assert.match(word.note ?? '', /Taken for an ordering key/)
})

test('a name where an id is due is refused beside the field', () => {
  for (const text of [
    '@anna',
    'Anna Ipsum',
    'chat.id=anna',
    'message.chat.id=',
    '007',
    '1'.repeat(20),
  ]) {
    const { isWrong, note, user, ordering_key: key } = whoseUpdates(text)
    assert.deepEqual([isWrong, user, key], [true, undefined, undefined], text)
    assert.match(note ?? '', /id/)
  }
})
