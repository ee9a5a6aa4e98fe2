import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldErrorOf } from '../../../../src/page/elements/field-error.ts'

const names = ['url', 'max_connections', 'retry_delays']

test('an error of the server is about the field that it names, and says what to do', () => {
  for (const [message, name, text] of [
    [
      'bad webhook: max_connections: expected a whole number, got "x"',
      'max_connections',
      'Enter a whole number, not "x".',
    ],
    ['retry_delays[3]: expected 0 to 9', 'retry_delays', 'Enter 0 to 9.'],
    ['retry_delays/0: expected 0 to 9', 'retry_delays', 'Enter 0 to 9.'],
    ['url: bad host', 'url', 'Bad host.'],
  ] as const) {
    assert.deepEqual(fieldErrorOf(message, names), { name, text }, message)
  }
})

test('an error that names no field of the form is about none', () => {
  for (const message of [
    'The server does not respond.',
    'ttl: expected 1',
    'my url is bad',
    'curl: x',
  ]) {
    assert.equal(fieldErrorOf(message, names), undefined, message)
  }
})
