import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TokenSeal } from '../../../src/bots/token-seal.ts'

const token = '4711:E_ZhRMSsaYr_XEtDv9aBjKUTnJVVpA1kVnU'
const adminKey = 'an admin key of some length'

test('an opened token is the one that was sealed, and the sealed text does not show it', () => {
  const sealed = new TokenSeal(adminKey).seal(token)
  assert(!sealed.includes(token.slice(5)))
  assert(!Buffer.from(sealed, 'base64url').includes(token.slice(5, 15)))
  assert.equal(new TokenSeal(adminKey).open(sealed), token)
})

test('the same token has the same sealed text, and another token differs from the first byte on', () => {
  const seal = new TokenSeal(adminKey)
  assert.equal(seal.seal(token), new TokenSeal(adminKey).seal(token))
  assert.notEqual(seal.seal(token).slice(0, 16), seal.seal(`${token}x`).slice(0, 16))
  assert.notEqual(seal.seal(token), new TokenSeal(`${adminKey}x`).seal(token))
})

test('a sealed token cannot be opened with another key or with any bit changed', () => {
  const sealed = new TokenSeal(adminKey).seal(token)
  assert.equal(new TokenSeal(`${adminKey}x`).open(sealed), undefined)
  const bytes = Buffer.from(sealed, 'base64url')
  const seal = new TokenSeal(adminKey)
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    assert.equal(seal.open(changed.toString('base64url')), undefined)
  }
  for (const odd of ['', 'x', sealed.slice(0, 37), 'ä']) assert.equal(seal.open(odd), undefined)
})

test('later versions can open a sealed token that is on disk', () => {
  const sealed =
    'dqKU2rqRa5Ae5l6BhCtE6U64A-c8CoewYakdOlaR0JmSTptLdX8iSA7toDqNPcjaEADzJ74QFrIuYOjm4qY-m-lYXXI'
  assert.equal(new TokenSeal(adminKey).open(sealed), token)
})
