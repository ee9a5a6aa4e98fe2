import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeText } from '../../../src/api/place-text.ts'

function says(message: string, sent: string, said: string): void {
  assert.equal(placeText(`Bad Request: update: ${message}`, sent), `Bad Request: update: ${said}`)
}

test('the place of an error in a text is its line and column, and what was found is said in words', () => {
  says(
    'expected "," or "}" at byte 16, got a string',
    '{"message":{\n\t"a":1 "b":2}}',
    'line 2, column 4: expected a comma or "}", found a string',
  )
  says(
    'expected a key or "}" at byte 1, got the end',
    '{',
    'line 1, column 2: expected a key or "}", found the end of the text',
  )
  says(
    'expected ":" at byte 4, got byte 10',
    '{"a"\n1}',
    'line 1, column 5: expected a colon, found the end of the line',
  )
  says(
    'expected a value at byte 12, got ,',
    '{"ö😀":\r\n,',
    'line 2, column 1: expected a value, found a comma',
  )
  says(
    'expected a value at byte 9, got ,',
    '{"ö😀",}',
    'line 1, column 6: expected a value, found a comma',
  )
  says(
    'expected no update_id, which the server assigns, at byte 1',
    '{"update_id":1}',
    'line 1, column 2: expected no update_id, which the server assigns',
  )
  says(
    'expected one of the 2 types at byte 1, got "a": b, c',
    '{"a":1}',
    'line 1, column 2: expected one of the 2 types, found "a": b, c',
  )
})

test('a message that names no byte stays as it is', () => {
  for (const message of ['update: expected an object', 'at byte 7', '']) {
    assert.equal(placeText(message, '{}'), message)
  }
})
