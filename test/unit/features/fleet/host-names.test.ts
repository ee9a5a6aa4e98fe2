import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HostNames, noHost } from '../../../../src/features/fleet/host-names.ts'

test('a host of many rows is kept once, and forgotten with the last of them', () => {
  const hosts = new HostNames()
  const shop = hosts.take('shop.example:8443')
  assert.equal(hosts.take('SHOP.example:8443'), shop)
  const other = hosts.take('[::1]')
  assert.equal(hosts.size, 2)
  hosts.giveBack(shop)
  assert.equal(hosts.name(shop), 'shop.example:8443')
  hosts.giveBack(shop)
  assert.deepEqual([hosts.size, hosts.name(shop), hosts.name(other)], [1, undefined, '[::1]'])
  // Its number may become that of another one.
  assert.equal(hosts.name(hosts.take('new.example')), 'new.example')
  hosts.giveBack(noHost)
  assert.equal(hosts.name(noHost), undefined)
})

test('numbers stay distinct while hosts come and go', () => {
  const hosts = new HostNames()
  const numbers = ['a', 'b', 'c'].map((name) => hosts.take(name))
  hosts.giveBack(numbers[0] ?? noHost)
  const later = ['d', 'e'].map((name) => hosts.take(name))
  const kept = [...numbers.slice(1), ...later]
  assert.equal(new Set(kept).size, kept.length)
  assert.deepEqual(
    kept.map((number) => hosts.name(number)),
    ['b', 'c', 'd', 'e'],
  )
})

test('the words of a host begin after dots and hyphens', () => {
  const hosts = new HostNames()
  const number = hosts.take('bot-7.hooks.Shop.example:8443')
  for (const word of ['bot-7.h', '7.hooks', 'hooks', 'shop.example', 'example:8443']) {
    assert(hosts.hasWordPrefix(number, word), word)
  }
  for (const word of ['ot-7', 'ooks', 'shop.example/']) {
    assert(!hosts.hasWordPrefix(number, word), word)
  }
  assert(!hosts.hasWordPrefix(noHost, 'hooks'))
})
