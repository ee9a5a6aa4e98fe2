import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitText } from '../../../src/api/wait-text.ts'

const refused = {
  failures: 5,
  last_error: 'Wrong response from the webhook: 500 Internal Server Error',
  next_attempt: 12,
}

function said(...update: Parameters<typeof waitText>): string | undefined {
  const { before = '', behind = '', after = '' } = waitText(...update) ?? {}
  return `${before}${behind}${after}`
}

test('an update that waits says behind which one of whose, and what has become of that', () => {
  const waits_for = { update_id: 8_622, ...refused }
  const chat = { update_id: 9_000, subject: 'chat 101', waits_for }
  assert.equal(
    said(chat),
    'Waits behind 8622 of chat 101, which got 500 Internal Server Error 5 times',
  )
  assert.equal(waitText(chat)?.nextAttempt, 12)
  const lost = { ...waits_for, failures: 2, last_error: 'Connection refused' }
  assert.match(
    said({ ...chat, waits_for: lost }) ?? '',
    /, which failed twice: Connection refused$/,
  )
  const once = { ...waits_for, failures: 1, last_error: null }
  assert.equal(
    said({ update_id: 9_000, subject: null, waits_for: once }),
    'Waits behind 8622 of the same ordering key, which failed once',
  )
  const untried = { ...waits_for, failures: 0, last_error: null, next_attempt: null }
  assert.equal(said({ ...chat, waits_for: untried }), 'Waits behind 8622 of chat 101')
})

test('one that comes first says how often it has failed, and nothing before it was tried', () => {
  const waits_for = { update_id: 8_622, ...refused }
  assert.equal(said({ update_id: 8_622, waits_for }), 'It got 500 Internal Server Error 5 times')
  assert.equal(waitText({ update_id: 8_622, waits_for: { ...waits_for, failures: 0 } }), undefined)
  assert.equal(waitText({ update_id: 8_622, waits_for: null }), undefined)
  assert.equal(waitText({ update_id: 8_622 }), undefined)
})
