import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readableUpdate } from '../../../../src/page/updates/readable-update.ts'

test('an update is shown in lines, and each token of it is as it was pushed', () => {
  assert.equal(readableUpdate('{"a":{"b":1}}'), '{\n  "a": {\n    "b": 1\n  }\n}')
  assert.equal(readableUpdate('{ "a" : [ ] ,"b":{ }}'), '{\n  "a": [],\n  "b": {}\n}')
  for (const digits of ['12345678901234567890', '1.0', '-0', '1E400', '1,"a":2']) {
    const shown = readableUpdate(`{"a":${digits}}`)
    assert.equal(shown.replaceAll(/\s/g, ''), `{"a":${digits}}`)
    assert.ok(shown.startsWith('{\n  "a": '))
  }
  const text = String.raw`{"a":"{ \"x\" :, [1] \\"}`
  assert.equal(
    readableUpdate(text),
    String.raw`{
  "a": "{ \"x\" :, [1] \\"
}`,
  )
})
