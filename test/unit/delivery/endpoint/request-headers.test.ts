import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEndpoint } from '../../../../src/delivery/endpoint/endpoint.ts'
import {
  requestHeaders,
  shownRequest,
  userAgentOf,
} from '../../../../src/delivery/endpoint/request-headers.ts'
import { isProtocolHeader } from '../../../../src/http/protocol-headers.ts'
import { secretsOf } from '../../../../src/delivery/endpoint/request-secrets.ts'

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

test('deliveries name the server, unless an operator names something else, whose value is a secret', () => {
  const endpoint = parseEndpoint('https://bot.example/', { local: false })
  const userAgent = userAgentOf('1.2.3-rc.1')
  const options = { endpoint, secretHeaderNames, userAgent }
  assert.deepEqual(requestHeaders(options).slice(2), ['User-Agent', 'Postbote/1.2.3-rc.1'])
  const shownOf = (more: object) =>
    shownRequest({ ...options, ...more, isSigned: true }).headers.find(
      ({ name }) => name.toLowerCase() === 'user-agent',
    )
  assert.deepEqual(shownOf({}), { name: 'User-Agent', value: userAgent })
  const headers = { 'user-agent': 'own' }
  assert.deepEqual(requestHeaders({ ...options, headers }).slice(2), ['user-agent', 'own'])
  assert.deepEqual(shownOf({ headers }), { name: 'user-agent', value: '***' })
  const request = { path: '/', headers: requestHeaders(options) }
  assert.deepEqual([...secretsOf(request)], [])
  const ofOperator = { path: '/', headers: ['User-Agent', 'crawler'] }
  assert.deepEqual([...secretsOf(ofOperator)], ['crawler'])
  const secret = { ...options, secretToken: 's', secretHeaderNames: ['User-Agent'] }
  assert.deepEqual(requestHeaders(secret).slice(2), ['User-Agent', 's'])
})

test('headers of HTTP, of proxies, of the signature and of the trace are those of the server, in any case', () => {
  const own =
    'Host,CONTENT-LENGTH,Content-Type,content-encoding,Content-,Connection,Transfer-Encoding,Trailer,TE,Upgrade,Expect,Keep-Alive,Proxy-Authorization,proxy-connection,webhook-id,Webhook-Signature,webhook-timestamp,traceparent'
  assert.deepEqual(
    own.split(',').filter((name) => !isProtocolHeader(name)),
    [],
  )
  const free = 'User-Agent,Cookie,Accept,Authorization,X,X-Host,Contents,Tea,tracestate,Webhook-Ids'
  assert.deepEqual(free.split(',').filter(isProtocolHeader), [])
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
