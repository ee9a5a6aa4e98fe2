import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRequestFields, requestFieldsText } from '../../../../src/links/link/request-fields.ts'

test('the fields of a request pass with their order, case and repetitions, and empty ones, and so does its shard', () => {
  const origin = { listener: 'private', clientAddress: '2001:db8::1', hops: 2, shard: 7 } as const
  for (const rawHeaders of [[], ['Host', ''], ['X', 'a', 'x', 'ü: b\t'], ['', '']]) {
    const fields = { method: 'POST', url: '/bot1:x/getMe?a=%0a', rawHeaders, origin }
    assert.deepEqual(readRequestFields(requestFieldsText(fields)), fields)
  }
  const unknown = { listener: 'bot', clientAddress: '', hops: 1, shard: undefined } as const
  const fields = { method: 'GET', url: '/', rawHeaders: [], origin: unknown }
  assert.deepEqual(readRequestFields(requestFieldsText(fields)), fields)
})

test('a text without a listener is refused', () => {
  assert.throws(() => readRequestFields('GET\n/\n'), /expected a listener/)
})
