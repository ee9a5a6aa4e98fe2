import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PostboteError } from '../../../src/kit/errors.ts'
import {
  allowedUpdatesLengthMax,
  allowedUpdatesOfPoll,
  allowedUpdatesOfWebhook,
} from '../../../src/queue/allowed-updates.ts'
import {
  allTypes,
  defaultTypesMask,
  isInMask,
  maskOf,
  typesOf,
  updateTypes,
} from '../../../src/kit/update-types.ts'

const both = [allowedUpdatesOfWebhook, allowedUpdatesOfPoll]

test('a list of names allows only those, in any case and order, and unknown ones are ignored', () => {
  for (const allowed of both) {
    assert.equal(allowed('["message"]'), maskOf(['message']))
    assert.equal(
      allowed(' [ "POLL" , "nonsense", "Chat_Member","poll"] '),
      maskOf(['poll', 'chat_member']),
    )
    assert.equal(allowed(JSON.stringify(updateTypes)), allTypes())
  }
})

test('an empty list and one of only unknown names mean the default set', () => {
  for (const allowed of both) {
    for (const text of ['[]', ' [ ] ', '["nonsense"]', '[""]', '["update_id","constructor"]']) {
      assert.equal(allowed(text), 'default', text)
    }
  }
})

test('an absent list means the default set for setWebhook and "as last set" for getUpdates', () => {
  for (const text of [undefined, '', 'null', ' null ']) {
    assert.equal(allowedUpdatesOfWebhook(text), 'default')
    assert.equal(allowedUpdatesOfPoll(text), undefined)
  }
})

test('a text that is not a JSON array of strings is refused by setWebhook and ignored by getUpdates', () => {
  for (const text of [
    'message',
    '"message"',
    '{}',
    '{"0":"message"}',
    '[1]',
    '["message",null]',
    '[["poll"]]',
    '[',
    'true',
    '0',
    '["a",]',
  ]) {
    assert.equal(allowedUpdatesOfPoll(text), undefined, text)
    assert.throws(
      () => allowedUpdatesOfWebhook(text),
      (error) =>
        error instanceof PostboteError &&
        error.status === 400 &&
        error.message === "Bad Request: can't parse allowed updates",
      text,
    )
  }
})

test('the default set excludes five types', () => {
  const left = updateTypes.filter((_type, typeNumber) => !isInMask(defaultTypesMask, typeNumber))
  assert.deepEqual(left, [
    'chat_member',
    'chat_boost',
    'removed_chat_boost',
    'message_reaction_count',
    'message_reaction',
  ])
  assert.equal(typesOf(defaultTypesMask).length, 17)
})

const names = (length: number): string => '["poll"]'.padEnd(length)

test('a text longer than any list of names is not parsed', () => {
  assert.equal(names(allowedUpdatesLengthMax).length, allowedUpdatesLengthMax)
  assert.notEqual(allowedUpdatesOfPoll(names(allowedUpdatesLengthMax)), undefined)
  assert.equal(allowedUpdatesOfPoll(names(allowedUpdatesLengthMax + 1)), undefined)
  assert.throws(() => allowedUpdatesOfWebhook(names(allowedUpdatesLengthMax + 1)), {
    message: "Bad Request: can't parse allowed updates",
  })
})
