import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readableUpdate } from '../../../../src/page/updates/readable-update.ts'

test('an update is shown in lines, unless that would change it', () => {
  assert.equal(readableUpdate('{"a":{"b":1}}'), '{\n  "a": {\n    "b": 1\n  }\n}')
  for (const text of ['{"a":12345678901234567890}', '{"a":1.0}', '{ "a":1}', '{"a":1,"a":2}']) {
    assert.equal(readableUpdate(text), text)
  }
})
