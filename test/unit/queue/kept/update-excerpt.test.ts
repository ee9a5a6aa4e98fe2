import assert from 'node:assert/strict'
import { test } from 'node:test'
import { excerptOf, excerptTextLengthMax } from '../../../../src/queue/kept/update-excerpt.ts'

function excerpt(type: string, payload: string): ReturnType<typeof excerptOf> {
  return excerptOf(Buffer.from(`"${type}":${payload}`))
}

test('a message is told by its sender, its chat and its first words, and ids keep their digits', () => {
  const text = excerpt(
    'message',
    '{"text":"Hello\\n  \\u00e9","from":{"id":9007199254740993,"first_name":"Anna","last_name":"I","username":"anna"},"chat":{"id":-1001234567890123457,"title":"Team"}}',
  )
  assert.deepEqual(text, {
    from: { id: '9007199254740993', name: 'Anna I', username: 'anna' },
    chat: { id: '-1001234567890123457', name: 'Team' },
    text: 'Hello é',
  })
})

test('what has no text is told by what it is', () => {
  const chat = '"chat":{"id":1}'
  assert.deepEqual(excerpt('message', `{${chat},"photo":[{}],"caption":"Cat"}`), {
    chat: { id: '1' },
    content: 'photo',
    text: 'Cat',
  })
  const venue = `{${chat},"location":{},"venue":{}}`
  assert.equal(excerpt('message', venue).content, 'venue')
  assert.equal(excerpt('message', `{${chat},"poll":{"question":"Why?"}}`).text, 'Why?')
  const query = `{"id":"1","from":{"id":2},"data":"buy","message":{${chat}}}`
  assert.deepEqual(excerpt('callback_query', query), {
    from: { id: '2' },
    chat: { id: '1' },
    text: 'buy',
  })
  const member = `{${chat},"from":{"id":2},"new_chat_member":{"status":"kicked"}}`
  assert.equal(excerpt('chat_member', member).content, 'kicked')
})

test('an excerpt is bounded, and never ends within a character', () => {
  for (const long of [
    'x'.repeat(5_000),
    '\\ud83d\\ude00'.repeat(2_000),
    '😀'.repeat(2_000),
    '\\n\\"'.repeat(2_000),
  ]) {
    const { text = '' } = excerpt('message', `{"text":"${long}"}`)
    assert.ok(Array.from(text).length <= excerptTextLengthMax, text)
    assert.ok(text.endsWith('…'))
    assert.doesNotMatch(text, /\p{Cs}/u)
  }
})

test('what is not as the Bot API has it has an empty excerpt', () => {
  for (const payload of [
    '1',
    '[]',
    '{}',
    '{"from":7,"chat":[],"text":{}}',
    '{"message":"x"}',
    'null',
  ]) {
    assert.deepEqual(excerpt('message', payload), {}, payload)
  }
})
