import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientAddress } from '../../../src/http/client.ts'
import { clientKey } from '../../../src/admission/client-key.ts'

function same(...addresses: string[]): void {
  for (const address of addresses) {
    assert.deepEqual(clientKey(address), clientKey(addresses[0]!), `${address} and ${addresses[0]}`)
  }
}

function distinct(...addresses: string[]): void {
  const keys = addresses.map((address) => JSON.stringify(clientKey(address)))
  assert.equal(new Set(keys).size, addresses.length, addresses.join(' '))
}

test('IPv4 addresses count one by one, however they are written', () => {
  same('203.0.113.7', '::ffff:203.0.113.7', '::FFFF:cb00:7107', '0:0:0:0:0:ffff:203.0.113.7')
  distinct('203.0.113.7', '203.0.113.8', '7.113.0.203', '0.0.0.0', '255.255.255.255')
})

test('IPv6 addresses count by their /64, however they are written', () => {
  same('2001:db8:1:2::1', '2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:0db8:0001:0002:0:0:0:9')
  distinct('2001:db8:1:2::1', '2001:db8:1:3::1', '2001:db8:2:2::1', '2001:db9:1:2::1')
  same('fe80::1', 'fe80::2%eth0')
  same('2001:db8:1:2::1', clientAddress('2001:db8:1:2::1', undefined))
  distinct(...['2001:db8:1:2::1', '2001:db8:1:3::1'].map((each) => clientAddress(each, undefined)))
})

test('no IPv6 prefix is mistaken for an IPv4 address or for no address', () => {
  distinct('0.0.0.9', '0:1:0:9::', '2001:db8:0:9::', '', '::1')
  distinct('0.0.0.0', '0:1::', '')
  same('::', '::1', '::5', '::9.9.9.9')
  distinct('::9.9.9.9', '9.9.9.9')
})

test('all texts that are no addresses share one key', () => {
  same(
    '',
    'unix:',
    'localhost',
    '1',
    '0x7f.1',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    ':::',
    'x'.repeat(9_999),
  )
})

test('no address has the key of an empty entry', () => {
  for (const address of ['', '::', '::1', '0.0.0.0', '::ffff:0.0.0.0', '0:0:0:1::']) {
    assert.notDeepEqual(clientKey(address), { high: 0, low: 0 }, address)
  }
})
