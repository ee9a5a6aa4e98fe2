import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sessionS } from '../../../src/private-api/limits.ts'
import { SessionCookie } from '../../../src/private-api/session-cookie.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const adminKey = 'the-key-of-the-admin'

/** The header that a browser sends after this Set-Cookie. */
function sentBack(setCookie: string): string {
  return setCookie.split(';', 1)[0] ?? ''
}

test('a session is valid for any process with the same admin key, until its expiry', async () => {
  const clock = new FakeClock()
  const { setCookie, expiresAtS } = new SessionCookie({ adminKey, clock }).create('root', false)
  const elsewhere = new SessionCookie({ adminKey, clock })
  assert.equal(expiresAtS, clock.nowMs() / 1_000 + sessionS)
  assert.equal(elsewhere.holderOf(sentBack(setCookie)), 'root')
  clock.jump(sessionS * 1_000 - 1)
  assert.equal(elsewhere.holderOf(sentBack(setCookie)), 'root')
  clock.jump(1)
  assert.equal(elsewhere.holderOf(sentBack(setCookie)), undefined)
})

test('a new admin key ends all sessions', () => {
  const clock = new FakeClock()
  const { setCookie } = new SessionCookie({ adminKey, clock }).create('root', false)
  const renewed = new SessionCookie({ adminKey: 'another-key-of-the-admin', clock })
  assert.equal(renewed.holderOf(sentBack(setCookie)), undefined)
})

test('a session with another expiry or another code is invalid', () => {
  const clock = new FakeClock()
  const sessions = new SessionCookie({ adminKey, clock })
  const cookie = sentBack(sessions.create('root', false).setCookie)
  const [, expiry = '', mac = ''] = /=(\w+)\.(.+)$/.exec(cookie) ?? []
  const later = (Number.parseInt(expiry, 36) + 1).toString(36)
  const other = mac.startsWith('A') ? 'B' : 'A'
  for (const value of [
    `${later}.${mac}`,
    `${expiry}.${other}${mac.slice(1)}`,
    `${expiry}.${mac.slice(0, -4)}`,
    `${expiry}.`,
    expiry,
    `${expiry}.${mac}.${mac}`,
    `${expiry}.${'A'.repeat(10_000)}`,
    '',
  ]) {
    assert.equal(sessions.holderOf(`postbote_session=${value}`), undefined, value)
  }
  assert.equal(sessions.holderOf(undefined), undefined)
  assert.equal(sessions.holderOf(`other=1; ${cookie}; more=2`), 'root')
})

test('the cookie is out of reach for scripts and other sites, and contains nothing of the key', () => {
  const sessions = new SessionCookie({ adminKey, clock: new FakeClock() })
  const { setCookie } = sessions.create('root', false)
  assert.match(
    setCookie,
    /^postbote_session=[0-9a-z]+\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
  )
  assert.match(sessions.create('root', true).setCookie, /; Secure$/)
  assert.match(sessions.removal, /^postbote_session=; .*Max-Age=0$/)
  assert(!setCookie.includes(adminKey))
})
