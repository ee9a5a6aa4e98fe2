import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readBotChange, settingsJson } from '../../../../src/features/bots/read-bot-change.ts'

const ownHeaders = new Set(['x-telegram-bot-api-secret-token'])

/** Returns the fields that a body changes. */
function change(body: object): object {
  return JSON.parse(JSON.stringify(readBotChange(body, ownHeaders)))
}

test('a field that is left out stays, and null takes a setting back', () => {
  assert.deepEqual(change({ default_ttl: 60 }), { ttlS: 60 })
  assert.deepEqual(change({ first_name: 'Ä b', username: 'b_1' }), {
    firstName: 'Ä b',
    username: 'b_1',
  })
  const faces = '\u{1f916}'.repeat(64)
  assert.deepEqual(change({ first_name: faces }), { firstName: faces })
  const all = {
    validate: null,
    polls: null,
    default_ttl: null,
    connections_cap: null,
    retry_delays: null,
    headers: null,
  }
  assert.deepEqual(change(all), {
    isValidated: null,
    polls: null,
    ttlS: null,
    connectionsMax: null,
    retryDelaysS: null,
    headers: null,
  })
  const set = {
    validate: 'telegram',
    polls: 'take_over',
    connections_cap: 1_000,
    retry_delays: [0, 2, 3_600],
    headers: { Authorization: 'Bearer abc', 'X-Tenant-1': '4' },
  }
  assert.deepEqual(change(set), {
    isValidated: true,
    polls: 'take_over',
    connectionsMax: 1_000,
    retryDelaysS: [0, 2, 3_600],
    headers: { Authorization: 'Bearer abc', 'X-Tenant-1': '4' },
  })
})

test('a field that is out of its bounds is refused by its name', () => {
  const six = Object.fromEntries([1, 2, 3, 4, 5, 6].map((nth) => [`X-${nth}`, 'v']))
  for (const [field, values] of Object.entries({
    first_name: [null, '', 'a\nb', 'x'.repeat(65), '\u{1f916}'.repeat(65), '\ud83e', 5],
    username: [null, '', 'a b', 'ä', 'x'.repeat(65)],
    validate: ['other', 1],
    polls: ['takeover', '', true, ['take_over']],
    default_ttl: [0, 1.5, '60', 31_536_001, true, []],
    connections_cap: [0, 1_001, '5'],
    retry_delays: [[], [0], [1, 0], [3_601], ['1'], 5, 'x', Array(17).fill(1), {}],
    headers: [{}, [], 'X-A: b', 5, six],
  })) {
    for (const value of values) {
      const refused = { code: 'BAD_REQUEST', message: new RegExp(` ${field}: expected `) }
      assert.throws(() => change({ [field]: value }), refused, `${field} ${JSON.stringify(value)}`)
    }
  }
  assert.throws(() => change({}), / body: expected at least one field/)
})

test('headers have names that neither HTTP nor the server needs, without control characters, and no error has a value', () => {
  const values = ['', ' v', 'v ', 'a\r\nX-B: c', 'a\tb', 'a\0', 'ä', 'x'.repeat(1_025), 5, null]
  const refused: readonly object[] = [
    ...[
      'Host',
      'Content-Type',
      'content-length',
      'Webhook-Id',
      'Proxy-Authorization',
      'Transfer-Encoding',
      'Traceparent',
      '',
      'X-a b',
      'X-a:b',
      'X-\u212aey',
    ].map((name) => ({ [name]: 's3cret' })),
    { [`X-${'a'.repeat(63)}`]: 's3cret' },
    { 'x-telegram-BOT-api-secret-token': 's3cret' },
    { 'X-A': 's3cret', 'x-a': 's3cret' },
    ...values.map((value) => ({ 'X-A': value })),
  ]
  for (const headers of refused) {
    assert.throws(
      () => change({ headers }),
      ({ code, message }) => code === 'BAD_REQUEST' && !/s3cret|X-B/.test(message),
      JSON.stringify(headers),
    )
  }
  for (const headers of ['X-A: s3cret', ['s3cret'], 5]) {
    assert.throws(
      () => change({ headers }),
      ({ message }) => !/s3cret|5,|got/.test(message),
    )
  }
  const longest = { [`X-${'a'.repeat(62)}`]: 'x'.repeat(1_024) }
  assert.deepEqual(change({ headers: longest }), { headers: longest })
  const free = { 'User-Agent': 'v', Cookie: 'v', X: 'v', "!#$%&'*+.^_`|~9": 'v' }
  assert.deepEqual(change({ headers: free }), { headers: free })
})

test('only settings that are set are shown, and of headers their names', () => {
  const none = {
    isValidated: false,
    polls: undefined,
    ttlS: undefined,
    connectionsMax: undefined,
    retryDelaysS: undefined,
    headerNames: undefined,
  }
  assert.equal(JSON.stringify(settingsJson(none)), '{"validate":null}')
  assert.deepEqual(settingsJson({ ...none, headerNames: ['X-A'] }).headers, ['X-A'])
})
