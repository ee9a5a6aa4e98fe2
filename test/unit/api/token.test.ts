import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  makeToken,
  parseToken,
  secretHash,
  type TokenFilter,
  TokenVerifier,
} from '../../../src/api/token.ts'
import { PostboteError } from '../../../src/kit/errors.ts'

function sha256Of(secret: string): string {
  return secretHash(secret).toString('base64url')
}

function refusalOf(text: string, filter?: TokenFilter): string {
  try {
    parseToken(text, filter)
  } catch (error) {
    if (error instanceof PostboteError) return `${error.status} ${error.message}`
    throw error
  }
  return 'accepted'
}

const knownToken = '123456789:paWlpaWlpaWlpaWlpaWlpaWlpaWlpDtRjM3'
const invalid = '401 Unauthorized: invalid token specified'
const unallowed = '421 Misdirected Request: unallowed token specified'

function changedAt(text: string, index: number): string {
  return text.slice(0, index) + (text[index] === 'A' ? 'B' : 'A') + text.slice(index + 1)
}

test('a created token is accepted and has the shape that frameworks check', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 2 ** 52 - 1 }), (botId) => {
      const token = makeToken(botId, randomBytes)
      assert.match(token, /^\d+:[\w-]{35}$/)
      assert.deepEqual(parseToken(token), { botId, secret: token.slice(token.indexOf(':') + 1) })
    }),
  )
})

test('the format never changes: known random bytes make a known token', () => {
  const token = makeToken(123_456_789, (count) => Buffer.alloc(count, 0xa5))
  assert.equal(token.slice(0, 39), '123456789:paWlpaWlpaWlpaWlpaWlpaWlpaWlp')
  assert.equal(token, knownToken)
  // The first of the six characters holds only the two highest of the 32 bits.
  assert.match(token.slice(39), /^[A-D]/)
})

test('two tokens differ', () => {
  assert.notEqual(makeToken(100, randomBytes), makeToken(100, randomBytes))
})

test('a leading 0, more than 80 characters, no colon and a slash are refused with 401', () => {
  for (const text of ['0', '0:x', '0123:abc', '123', '123:a/b', 'a/b:c', '-']) {
    assert.equal(refusalOf(text), invalid, text)
  }
  assert.equal(refusalOf(''), `${invalid}: expected it right after "/bot", got a slash`)
  assert.equal(refusalOf(`x${'1'.repeat(78)}:a`), invalid)
  // With one character less, the part before the colon is the error.
  assert.equal(refusalOf(`x${'1'.repeat(77)}:a`), unallowed)
})

test('a part before the colon that is no integer is refused with 421', () => {
  for (const text of [':abc', 'abc:def', '1a:x', '1.5:x', ' 1:x', '+1:x', '１:x']) {
    assert.equal(refusalOf(text), unallowed, text)
  }
})

test('a bot outside the filter is refused with 421, whatever else is wrong with its token', () => {
  const filter = { remainder: 1, modulus: 3 }
  assert.equal(refusalOf(makeToken(102, randomBytes), filter), unallowed)
  assert.equal(refusalOf(makeToken(103, randomBytes), filter), 'accepted')
  assert.equal(refusalOf('102:short', filter), unallowed)
  assert.equal(refusalOf('103:short', filter), invalid)
  // A leading 0 is checked first.
  assert.equal(refusalOf('0102:short', filter), invalid)
  assert.equal(refusalOf(`${'9'.repeat(40)}:x`, filter), unallowed)
  assert.equal(refusalOf(`1${'0'.repeat(40)}:x`, filter), invalid)
})

test('an id out of range, a wrong shape and a wrong checksum are refused with 401', () => {
  const good = makeToken(123_456_789, randomBytes)
  assert.equal(refusalOf(makeToken(99, randomBytes)), invalid)
  assert.equal(refusalOf(makeToken(2 ** 52, randomBytes)), invalid)
  assert.equal(refusalOf('-5:abc'), invalid)
  assert.equal(refusalOf(`${'9'.repeat(40)}:x`), invalid)
  assert.equal(refusalOf(good.slice(0, -1)), invalid)
  assert.equal(refusalOf(`${good}A`), invalid)
  assert.equal(refusalOf(`${good.slice(0, -1)}:`), invalid)
  assert.equal(refusalOf(`${good.slice(0, -1)}é`), invalid)
  for (let index = 10; index < good.length; index++) {
    assert.equal(refusalOf(changedAt(good, index)), invalid, `character ${index}`)
  }
  assert.equal(refusalOf(good.replace('123456789:', '123456780:')), invalid)
})

test('a secret of other characters is refused, whatever its checksum is', () => {
  const random = { toString: () => '!'.repeat(30) }
  // @ts-expect-error the part of a Buffer that is used
  assert.equal(refusalOf(makeToken(100, () => random)), invalid)
})

test('a refusal does not contain the token', () => {
  const good = makeToken(123_456_789, randomBytes)
  assert.throws(
    () => parseToken(changedAt(good, 40)),
    (error) => {
      assert.ok(error instanceof PostboteError)
      return !`${error.stack}${JSON.stringify(error)}`.includes(good.slice(10, 30))
    },
  )
})

test('a secret is stored as its SHA-256', () => {
  assert.deepEqual(secretHash('abc'), createHash('sha256').update('abc').digest())
})

function secretOf(token: string): string {
  return token.slice(token.indexOf(':') + 1)
}

test('a verifier repeatedly accepts the secrets that it was given and no others', () => {
  const secret = secretOf(makeToken(100, randomBytes))
  const other = secretOf(makeToken(100, randomBytes))
  const verifier = new TokenVerifier([{ sha256: sha256Of(secret) }])
  for (let round = 0; round < 3; round++) {
    assert.equal(verifier.accepts(other, round), false)
    assert.equal(verifier.accepts(secret, round), true)
    assert.equal(verifier.accepts(changedAt(secret, 34), round), false)
    assert.equal(verifier.accepts('', round), false)
    assert.equal(verifier.accepts(`${secret}A`, round), false)
  }
  assert.equal(new TokenVerifier([]).accepts(secret, 0), false)
})

test('a character beyond ASCII never matches the character that has its low byte', () => {
  const secret = 'A'.repeat(35)
  const verifier = new TokenVerifier([{ sha256: sha256Of(secret) }])
  assert.equal(verifier.accepts(secret, 0), true)
  assert.equal(verifier.accepts(`\u0141${secret.slice(1)}`, 0), false)
  assert.equal(verifier.accepts(`${secret.slice(1)}\u0141`, 0), false)
})

test('the old secret is accepted until the overlap ends, even if it was the last one accepted', () => {
  const old = secretOf(makeToken(100, randomBytes))
  const current = secretOf(makeToken(100, randomBytes))
  const verifier = new TokenVerifier([
    { sha256: sha256Of(current) },
    { sha256: sha256Of(old), endsAtMs: 5_000 },
  ])
  assert.equal(verifier.accepts(old, 4_999), true)
  assert.equal(verifier.accepts(current, 4_999), true)
  assert.equal(verifier.accepts(old, 4_999), true)
  assert.equal(verifier.accepts(old, 5_000), false)
  assert.equal(verifier.accepts(current, 5_000), true)
})
