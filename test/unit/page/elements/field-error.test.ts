import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type FieldKind,
  fieldErrorOf,
  plainText,
} from '../../../../src/page/elements/field-error.ts'

const kinds = new Map<string, FieldKind>([
  ['url', 'text'],
  ['max_connections', 'text'],
  ['retry_delays', 'text'],
  ['scopes', 'choice'],
  ['retain', 'duration'],
  ['retain_bytes', 'size'],
])

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
    ['url: expected 1 to 64 letters, got none', 'url', 'Enter 1 to 64 letters.'],
    ['url: expected 1 to 64 letters, got ""', 'url', 'Enter 1 to 64 letters.'],
    [
      'url: expected a string of at most 9 characters, got a value of 12 characters',
      'url',
      'Enter at most 9 characters, not 12.',
    ],
    [
      'max_connections: expected a whole number from 1 to 9007199254740991, got 0',
      'max_connections',
      'Enter a whole number of 1 or more, not 0.',
    ],
    [
      'retry_delays: expected 0 to 9, or null, got a list of 1',
      'retry_delays',
      'Enter 0 to 9, or nothing.',
    ],
    [
      'scopes: expected a list of 1 to 4 different values, got a list of 0',
      'scopes',
      'Choose at least one.',
    ],
    [
      "retain: expected a whole number from 0 to 31622400, or null for the server's option, got 8639999913600",
      'retain',
      "Enter a time from 0 s to 366 d, or nothing for the server's option.",
    ],
    [
      'retain_bytes: expected a whole number from 0 to 17592186044416, or null, got "x"',
      'retain_bytes',
      'Enter a size from 0 B to 16 TiB, or nothing, not "x".',
    ],
  ] as const) {
    assert.deepEqual(fieldErrorOf(message, kinds), { name, text }, message)
  }
})

test('an error that names no field of the form is about none', () => {
  for (const message of [
    'The server does not respond.',
    'ttl: expected 1',
    'my url is bad',
    'curl: x',
  ]) {
    assert.equal(fieldErrorOf(message, kinds), undefined, message)
  }
})

test('a call that failed is told without the words of the protocol', () => {
  for (const [message, text] of [
    ['Bad Request: bad webhook: Connection refused', 'Connection refused.'],
    ['Too Many Requests: retry after 7', 'Too many calls at once. Try again in 7 s.'],
    ['Bad Request: ttl: expected 1', 'ttl: expected 1'],
    ['Bad Request: headers.Host: no', 'headers.Host: no'],
    ['The server does not respond.', 'The server does not respond.'],
  ] as const) {
    assert.equal(plainText(message), text)
  }
})
