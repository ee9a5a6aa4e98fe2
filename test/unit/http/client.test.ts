import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IncomingMessage } from 'node:http'
import { clientAddress, clientsBy, isShared, unixClient } from '../../../src/http/client.ts'
import { setOrigin } from '../../../src/http/connection-origin.ts'
import type { ListenerKind } from '../../../src/http/listener.ts'

test('X-Real-Ip counts if the connection comes from a reserved address or a Unix socket', () => {
  const near = [
    '127.0.0.1',
    '10.1.2.3',
    '192.168.0.1',
    '172.31.255.255',
    '100.64.0.1',
    '::1',
    'fd00::1',
  ]
  for (const address of [...near, 'fe80::1', '::ffff:10.0.0.1', '2001:db8::1', '', undefined]) {
    assert.equal(clientAddress(address, '8.8.8.8'), '8.8.8.8', address)
  }
})

test('X-Real-Ip is ignored if the connection comes from the internet', () => {
  assert.equal(clientAddress('9.9.9.9', '8.8.8.8'), '9.9.9.9')
  assert.equal(clientAddress('172.32.0.1', '8.8.8.8'), '172.32.0.1')
  assert.equal(clientAddress('::ffff:9.9.9.9', '8.8.8.8'), '9.9.9.9')
  assert.equal(clientAddress('2a00::1', '8.8.8.8'), '2a00:0:0:0::/64')
})

test('an X-Real-Ip that is no address is ignored', () => {
  for (const header of [undefined, '', 'unknown', '8.8.8.8, 9.9.9.9', ['8.8.8.8'], '8.8.8.8:80']) {
    assert.equal(clientAddress('127.0.0.1', header), '127.0.0.1')
    assert.equal(clientAddress(undefined, header), unixClient)
  }
  assert.equal(clientAddress(undefined, ' 8.8.8.8 '), '8.8.8.8')
})

test('IPv6 addresses count by their /64, and IPv4 addresses inside IPv6 as IPv4', () => {
  assert.equal(clientAddress('2a00:1:2:3:4:5:6:7', undefined), '2a00:1:2:3::/64')
  assert.equal(clientAddress('2a00:1:2:3::1', undefined), '2a00:1:2:3::/64')
  assert.notEqual(clientAddress('2a00:1:2:4::1', undefined), '2a00:1:2:3::/64')
  assert.equal(clientAddress('::1', '2A00:1:2:3::9'), '2a00:1:2:3::/64')
  assert.equal(clientAddress('::ffff:9.9.9.9', undefined), '9.9.9.9')
  assert.equal(clientAddress('::9.9.9.9', undefined), '0:0:0:0::/64')
  assert.equal(clientAddress('fe80::1%eth0', '8.8.8.8'), '8.8.8.8')
})

test('many clients may share a socket or a private address, unless X-Real-Ip distinguishes them', () => {
  for (const address of ['127.0.0.1', '10.1.2.3', '::1', '', undefined]) {
    assert.equal(isShared(address, undefined), true, address)
    assert.equal(isShared(address, 'unknown'), true, address)
    assert.equal(isShared(address, '8.8.8.8'), false, address)
  }
  assert.equal(isShared('9.9.9.9', undefined), false)
})

function requestFrom(listener: ListenerKind, address: string, realIp?: string): IncomingMessage {
  const headers = realIp === undefined ? {} : { 'x-real-ip': realIp }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these fields are used
  const request = { headers } as unknown as IncomingMessage
  setOrigin(request, { listener, clientAddress: address, hops: 0 })
  return request
}

test('a request is counted under its key on the private listener, and under the address of its client otherwise', () => {
  const clientOf = clientsBy(() => '0123')
  const keyed = clientOf(requestFrom('private', '9.9.9.9'))
  assert.deepEqual([keyed.holder, keyed.account, keyed.isCharged], ['0123', 'key 0123', true])
  const bot = clientOf(requestFrom('bot', '9.9.9.9'))
  assert.deepEqual([bot.holder, bot.account, bot.isCharged], [undefined, '9.9.9.9', true])
  const keyless = clientsBy(() => undefined)(requestFrom('private', '9.9.9.9'))
  assert.deepEqual([keyless.holder, keyless.account], [undefined, '9.9.9.9'])
})

test('the admin key runs up no debts, and neither do the clients of a Unix socket that nobody tells apart', () => {
  assert.equal(clientsBy(() => 'root')(requestFrom('private', '9.9.9.9')).isCharged, false)
  const clientOf = clientsBy(() => undefined)
  const alike = clientOf(requestFrom('bot', ''))
  assert.deepEqual([alike.account, alike.isCharged, alike.isShared], [unixClient, false, true])
  const reported = clientOf(requestFrom('bot', '', '8.8.8.8'))
  assert.deepEqual(
    [reported.account, reported.isCharged, reported.isShared],
    ['8.8.8.8', true, false],
  )
})

test('a client is reported by a proxy if another address is believed than that of its connection', () => {
  const clientOf = clientsBy(() => undefined)
  assert.equal(clientOf(requestFrom('bot', '10.0.0.1', '8.8.8.8')).isReported, true)
  assert.equal(clientOf(requestFrom('bot', '9.9.9.9', '8.8.8.8')).isReported, false)
  assert.equal(clientOf(requestFrom('bot', '10.0.0.1')).isReported, false)
})
