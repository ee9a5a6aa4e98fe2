import assert from 'node:assert/strict'
import { test } from 'node:test'
import { botSentence, troubleText } from '../../../../src/page/bots/bot-sentence.ts'

const nowS = 1_800_000_000
const well = {
  mode: 'webhook',
  health: 'healthy',
  health_reason: 'all of the last 12 attempts succeeded',
  pending: 0,
  oldest_age: null,
  last_error_date: null,
  last_error_message: null,
} as const

test('a bot that is well says since when it has not failed, and what waits', () => {
  assert.deepEqual(botSentence(well, nowS), {
    lead: 'All of the last 12 attempts succeeded.',
    more: 'Nothing waits. No failure is known.',
  })
  const before = { last_error_date: nowS - 10_800, last_error_message: 'Connection refused' }
  assert.equal(
    botSentence({ ...well, ...before, pending: 1, oldest_age: 3 }, nowS).more,
    '1 update waits, the oldest for 3 s. The last failure was 3 h ago: Connection refused.',
  )
})

test('a bot in trouble says it once, and in units that people read', () => {
  const failing = {
    ...well,
    health: 'failing',
    health_reason:
      'Connection refused; 17 failures in 2 h, no success yet; 3 chats wait, next attempt in 41 s',
    pending: 1_204,
    oldest_age: 8_112,
    last_error_date: nowS - 4,
    last_error_message: 'Connection refused',
  } as const
  assert.deepEqual(botSentence(failing, nowS), {
    lead: 'Connection refused.',
    more: '17 failures in 2 h, no success yet. 3 chats wait, next attempt in 41 s. 1,204 updates wait, the oldest for 2 h.',
  })
})

test('what the server has said of waiting updates is not said again', () => {
  const polled = {
    ...well,
    mode: 'polling',
    health: 'unpolled',
    health_reason: 'nobody polls; last polled 3 h ago; 11,008 updates wait, the oldest for 3 h',
    pending: 11_008,
    oldest_age: 10_900,
  } as const
  assert.deepEqual(botSentence(polled, nowS), {
    lead: 'Nobody polls.',
    more: 'Last polled 3 h ago. 11,008 updates wait, the oldest for 3 h.',
  })
})

test('a list of troubles says the cause alone, and the facts after it', () => {
  assert.deepEqual(
    troubleText({
      health_reason:
        'endpoint answers 502 Bad Gateway; 44 failures in 10 min; 4 chats wait; slowed down',
    }),
    { lead: 'Endpoint answers 502 Bad Gateway', more: '44 failures in 10 min, 4 chats wait' },
  )
  assert.deepEqual(troubleText({ health_reason: null }), { lead: '', more: '' })
  // Its list has the number of updates that wait, and the page of the bot counts the seconds.
  assert.deepEqual(
    troubleText({ health_reason: 'nobody polls; 17 updates wait, the oldest for 3 h; no client' }),
    { lead: 'Nobody polls', more: 'no client' },
  )
  assert.deepEqual(
    troubleText({ health_reason: 'Connection refused; 3 chats wait, next attempt in 41 s' }),
    { lead: 'Connection refused', more: '3 chats wait' },
  )
  assert.equal(troubleText({ health_reason: 'Connection refused; next attempt now' }).more, '')
})

test('what is said of a bot that is well begins with an update that has waited for minutes', () => {
  assert.deepEqual(botSentence({ ...well, pending: 4, oldest_age: 190 }, nowS), {
    lead: '4 updates wait, the oldest for 3 min.',
    more: 'All of the last 12 attempts succeeded. No failure is known.',
    isLate: true,
  })
  const polled = {
    ...well,
    mode: 'polling',
    health: null,
    health_reason: 'last polled 2 s ago; 1 update waits, the oldest for 3 min',
    pending: 1,
    oldest_age: 190,
  } as const
  assert.deepEqual(botSentence(polled, nowS), {
    lead: '1 update waits, the oldest for 3 min.',
    more: 'Last polled 2 s ago.',
    isLate: true,
  })
  assert.equal(botSentence({ ...well, pending: 4, oldest_age: 119 }, nowS).isLate, undefined)
  const failing = { ...well, health: 'failing', pending: 4, oldest_age: 190 } as const
  assert.equal(botSentence(failing, nowS).isLate, undefined, 'its word says more')
})

test('a failure that the cause names is not said again', () => {
  const answered = {
    ...well,
    health: 'failing',
    health_reason: 'endpoint answers 502 Bad Gateway; 3 failures in 10 min',
    last_error_date: nowS - 4,
    last_error_message: 'Wrong response from the webhook: 502 Bad Gateway',
  } as const
  assert.doesNotMatch(botSentence(answered, nowS).more, /last failure/)
})
