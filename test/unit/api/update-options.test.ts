import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  readIdempotencyHeader,
  readIdempotencyKey,
  readPushQuery,
} from '../../../src/api/update-options.ts'
import { PostboteError } from '../../../src/kit/errors.ts'

const bare = { orderingKey: undefined, ttlS: undefined, isTest: false, isValidated: false }

function refuses(query: Record<string, unknown>, field: string): void {
  assert.throws(
    () => readPushQuery(query),
    (error) =>
      error instanceof PostboteError &&
      error.status === 400 &&
      error.message.startsWith(`Bad Request: ${field}: expected`),
    JSON.stringify(query),
  )
}

test('a query without options, or with empty ones, sets no options', () => {
  assert.deepEqual(readPushQuery({}), bare)
  assert.deepEqual(readPushQuery({ ordering_key: '', ttl: '', test: '', validate: '' }), bare)
  assert.deepEqual(readPushQuery(Object.create(null)), bare)
})

test('the options of a query are read from their text', () => {
  assert.deepEqual(
    readPushQuery({ ordering_key: '42', ttl: '60', test: 'true', validate: 'telegram' }),
    {
      orderingKey: '42',
      ttlS: 60,
      isTest: true,
      isValidated: true,
    },
  )
  for (const yes of ['true', 'TRUE', 'yes', '1'])
    assert.equal(readPushQuery({ test: yes }).isTest, true)
  for (const no of ['false', 'no', '0']) assert.equal(readPushQuery({ test: no }).isTest, false)
})

test('an option that is not understood is refused and not ignored', () => {
  for (const ttl of ['0', '-1', '1.5', '1e3', 'x', ' 1', '31536001', '9'.repeat(400), ['1', '2']])
    refuses({ ttl }, 'ttl')
  for (const wrong of ['maybe', 'on', ['true', 'true']]) refuses({ test: wrong }, 'test')
  for (const validate of ['true', 'Telegram', ['telegram']]) refuses({ validate }, 'validate')
  for (const key of ['x'.repeat(257), ['a', 'b']]) refuses({ ordering_key: key }, 'ordering_key')
  refuses({ orderingKey: '1' }, '"orderingKey"')
  refuses({ idempotency_key: '1' }, '"idempotency_key"')
})

test('a field whose name may be a token is refused without showing it', () => {
  refuses({ '1234:AAAA': '1' }, 'an unknown field')
  refuses({ ['A'.repeat(35)]: '1' }, 'an unknown field')
})

test('an idempotency key is absent or usable, and never silently dropped', () => {
  assert.equal(readIdempotencyKey(undefined), undefined)
  assert.equal(readIdempotencyKey('a b~'), 'a b~')
  assert.throws(() => readIdempotencyKey(''), PostboteError)
  assert.throws(() => readIdempotencyKey(['a', 'b']), PostboteError)
})

const headersOf = (...values: string[]) => ({
  headers: { 'idempotency-key': values.join(', ') },
  headersDistinct: { 'idempotency-key': values },
})

test('a header with a comma is one key, and a header that is given twice is refused', () => {
  assert.equal(readIdempotencyHeader({ headers: {}, headersDistinct: {} }), undefined)
  assert.equal(readIdempotencyHeader(headersOf('a, b')), 'a, b')
  for (const twice of [headersOf('a', 'b'), headersOf('a', 'a')]) {
    assert.throws(() => readIdempotencyHeader(twice), /idempotency_key: expected a single value/)
  }
})
