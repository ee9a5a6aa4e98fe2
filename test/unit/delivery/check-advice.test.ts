import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkAdvice } from '../../../src/delivery/check-advice.ts'
import { type CheckStepName, checkSteps } from '../../../src/kit/states.ts'
import { failureOf, tlsFailureOf, WebhookFailure } from '../../../src/delivery/attempts/failure.ts'

const endpoint = { host: 'bot.example', port: 8443 }

function advice(step: CheckStepName, failure: WebhookFailure, status = 0): string {
  return checkAdvice({ endpoint, failed: { step, failure }, status })
}

function withCode(code: string): Error {
  return Object.assign(new Error(), { code })
}

test('each step that fails has an advice of its own, which is one sentence', () => {
  const failure = failureOf(withCode('ECONNREFUSED'))
  const all = checkSteps.map((step) => advice(step, failure))
  assert.equal(new Set(all).size, checkSteps.length)
  for (const sentence of [...all, checkAdvice({ endpoint, status: 200 })]) {
    assert.match(sentence, /^[A-Z][^!?]*\.$/)
  }
  assert.match(advice('name', failure), /bot\.example/)
  assert.match(advice('connection', failure), /port 8443/)
  assert.match(advice('connection', new WebhookFailure('Proxy: wrong response 407')), /--proxy/)
})

function tls(code: string): string {
  return advice('tls', tlsFailureOf(withCode(code)))
}

test('the advice says what to do about a certificate', () => {
  assert.match(tls('CERT_HAS_EXPIRED'), /^Renew the certificate/)
  for (const code of ['DEPTH_ZERO_SELF_SIGNED_CERT', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE']) {
    assert.match(tls(code), /upload your own with setWebhook/)
  }
  assert.match(tls('ERR_TLS_CERT_ALTNAME_INVALID'), /names bot\.example/)
  assert.match(tls('ERR_SSL_UNSUPPORTED_PROTOCOL'), /TLS 1\.2 or 1\.3/)
})

test('the advice says what to do about a response, or about none', () => {
  const status = (code: number): string =>
    advice('post', new WebhookFailure('no', 'rejected'), code)
  assert.match(status(302), /do not follow redirects/)
  for (const code of [401, 403]) assert.match(status(code), /secret_token/)
  for (const code of [404, 405]) assert.match(status(code), /path of the URL/)
  assert.match(status(410), /deleteWebhook|delete the webhook/)
  for (const code of [429, 502, 503, 504]) assert.match(status(code), /overloaded/)
  assert.match(status(400), /Push a test update/)
  assert.match(status(500), /log of the endpoint/)
  assert.match(advice('post', new WebhookFailure('late', 'timed_out')), /within 60 seconds/)
  assert.match(advice('post', new WebhookFailure('x', 'rejected')), /HTTP\/1\.1/)
  assert.match(advice('post', new WebhookFailure('x', 'tls_failed')), /client certificate/)
})
