import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TokenSeal } from '../../../src/bots/token-seal.ts'

const token = '4711:E_ZhRMSsaYr_XEtDv9aBjKUTnJVVpA1kVnU'
const adminKey = 'an admin key of some length'

test('a token comes out as it went in, and is not to be seen meanwhile', () => {
  const sealed = new TokenSeal(adminKey).seal(token)
  assert(!sealed.includes(token.slice(5)))
  assert(!Buffer.from(sealed, 'base64url').includes(token.slice(5, 15)))
  assert.equal(new TokenSeal(adminKey).open(sealed), token)
})

test('the same token gives the same text, another one another from its first byte on', () => {
  const seal = new TokenSeal(adminKey)
  assert.equal(seal.seal(token), new TokenSeal(adminKey).seal(token))
  assert.notEqual(seal.seal(token).slice(0, 16), seal.seal(`${token}x`).slice(0, 16))
  assert.notEqual(seal.seal(token), new TokenSeal(`${adminKey}x`).seal(token))
})

test('with another key, or changed by a bit anywhere, it stays shut', () => {
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

test('what is on disk can be opened by later versions', () => {
  const sealed =
    'dqKU2rqRa5Ae5l6BhCtE6U64A-c8CoewYakdOlaR0JmSTptLdX8iSA7toDqNPcjaEADzJ74QFrIuYOjm4qY-m-lYXXI'
  assert.equal(new TokenSeal(adminKey).open(sealed), token)
})
