import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEndpoint } from '../../../src/webhook/endpoint.ts'
import { requestHeaders, shownRequest } from '../../../src/webhook/request-headers.ts'

const secretHeaderNames = ['X-Service-Token', 'X-Telegram-Bot-Api-Secret-Token']
const url = 'https://user:pa55word@bot.example:8443/hooks/4711:AAsecret?key=abc'

test('operators see which headers a delivery has, and none of their secrets', () => {
  const endpoint = parseEndpoint(url, { local: false })
  const shown = shownRequest({
    endpoint,
    secretToken: 'the-secret',
    secretHeaderNames,
    isSigned: true,
  })
  assert.deepEqual([shown.method, shown.host], ['POST', 'bot.example:8443'])
  assert.deepEqual(
    shown.headers.map(({ name, value }) => `${name}: ${value}`),
    [
      'Content-Type: application/json',
      'Authorization: ***',
      'X-Service-Token: ***',
      'X-Telegram-Bot-Api-Secret-Token: ***',
      'webhook-id: ***',
      'webhook-timestamp: ***',
      'webhook-signature: ***',
    ],
  )
})

test('a header that deliveries do not have is not shown', () => {
  const endpoint = parseEndpoint('https://bot.example/', { local: false })
  const options = { endpoint, secretToken: undefined, secretHeaderNames }
  assert.deepEqual(shownRequest({ ...options, isSigned: false }).headers, [
    { name: 'Content-Type', value: 'application/json' },
  ])
  assert.deepEqual(requestHeaders(options), ['Content-Type', 'application/json'])
})

test('headers of the operator follow, without their values for operators, and no name is sent twice', () => {
  const endpoint = parseEndpoint(url, { local: false })
  const headers = { authorization: 'Bearer own', 'x-service-token': 'own', 'X-A': 'tenant' }
  const options = { endpoint, secretHeaderNames, headers }
  const basic = `Basic ${Buffer.from('user:pa55word').toString('base64')}`
  assert.deepEqual(requestHeaders(options), [
    'Content-Type',
    'application/json',
    'Authorization',
    basic,
    'X-A',
    'tenant',
  ])
  const shown = shownRequest({ ...options, isSigned: false })
  assert.deepEqual(shown.headers.at(-1), { name: 'X-A', value: '***' })
  assert.doesNotMatch(JSON.stringify(shown), /tenant|Bearer/)
})
