import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  classifyResponse,
  describeStatus,
  isGone,
} from '../../../../src/delivery/attempts/classify-response.ts'

test('only 2xx is a success, whatever the header says', () => {
  for (const status of [200, 201, 204, 299]) {
    assert.equal(classifyResponse({ status, deliveryOrder: undefined }), 'delivered')
    assert.equal(classifyResponse({ status, deliveryOrder: 'abort-message' }), 'delivered')
  }
  for (const status of [301, 400, 410, 429, 500, 599]) {
    assert.equal(classifyResponse({ status, deliveryOrder: undefined }), 'rejected')
    assert.equal(classifyResponse({ status, deliveryOrder: 'abort-message' }), 'refused')
  }
})

test('abort-message is found in any case and in a list, and nothing else counts as it', () => {
  for (const value of [
    'Abort-Message',
    'retry, ABORT-MESSAGE',
    ' abort-message ,x',
    ',abort-message',
  ]) {
    assert.equal(verdictOf(value), 'refused', value)
  }
  for (const value of ['', 'abort', 'abort-messages', 'abort-message;q=1', 'no abort-message']) {
    assert.equal(verdictOf(value), 'rejected', value)
  }
})

test('410 is Gone even if the update is rejected as well', () => {
  assert.equal(isGone({ status: 410, deliveryOrder: 'abort-message' }), true)
  assert.equal(isGone({ status: 404, deliveryOrder: undefined }), false)
})

test('a status is described by its number and the phrase that belongs to it', () => {
  assert.equal(describeStatus(404), 'Wrong response from the webhook: 404 Not Found')
  assert.equal(describeStatus(500), 'Wrong response from the webhook: 500 Internal Server Error')
  assert.equal(describeStatus(599), 'Wrong response from the webhook: 599')
})

function verdictOf(deliveryOrder: string): string {
  return classifyResponse({ status: 500, deliveryOrder })
}

test('a 401 or 403 hints at the secret_token', () => {
  assert.equal(
    describeStatus(403),
    'Wrong response from the webhook: 403 Forbidden (if it checks the secret_token, is it that of setWebhook?)',
  )
  assert.doesNotMatch(describeStatus(404), /secret_token/)
})
