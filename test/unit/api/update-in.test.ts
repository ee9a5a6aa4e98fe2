import assert from 'node:assert/strict'
import { test } from 'node:test'
import { updateIn } from '../../../src/api/update-in.ts'

test('the text of an update is found after a response of an endpoint that looks like it', () => {
  const body = '{"error":"x","update":{"message":{}}}'
  const response = `{"update_id":7,"latest_attempts":[{"response_body":${JSON.stringify(body)}}],"update":{"message":{"id":12345678901234567890}}}`
  assert.equal(updateIn(response), '{"message":{"id":12345678901234567890}}')
})
