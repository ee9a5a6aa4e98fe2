import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tailedUpdate } from '../../../../src/page/updates/readable-update.ts'

test('the live tail shows the digits of a payload as they were pushed', () => {
  const head = '{"update_id":7,"type":"message","bytes":100'
  for (const digits of [
    '-1001234567890123456',
    '1e400',
    '-0',
    '1.0',
    '1E2',
    '12345678901234567890',
  ]) {
    const update = `{"message":{"chat":{"id":${digits}}}}`
    const { updateId, text } = tailedUpdate(`${head},"update":${update}}`)
    assert.equal(updateId, 7)
    assert.ok(text.startsWith('  message  100'), text)
    assert.ok(text.replaceAll(/\s/g, '').endsWith(update), text)
    assert.match(text, /\n {6}"id": /)
  }
  assert.match(
    tailedUpdate(`${head},"update":{"message":{"a":",\\"update\\":"}}}`).text,
    /\n {4}"a": /,
  )
  assert.doesNotMatch(tailedUpdate(`${head}}`).text, /\n/)
})
