import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyAccess } from '../../../src/api/access.ts'
import { SessionCookie, sessionS } from '../../../src/access/session-cookie.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

const adminKey = 'the-key-of-the-admin'

/** The header that a browser sends after this Set-Cookie. */
function sentBack(setCookie: string): string {
  return setCookie.split(';', 1)[0] ?? ''
}

test('a session is valid for any process with the same admin key, until its expiry', async () => {
  const clock = new FakeClock()
  const { setCookie, expiresAtS } = new SessionCookie(adminKey, clock).create('root', false)
  const elsewhere = new SessionCookie(adminKey, clock)
  assert.equal(expiresAtS, clock.nowMs() / 1_000 + sessionS)
  assert.equal(elsewhere.sessionsOf(sentBack(setCookie))[0]?.holder, 'root')
  clock.jump(sessionS * 1_000 - 1)
  assert.equal(elsewhere.sessionsOf(sentBack(setCookie))[0]?.holder, 'root')
  clock.jump(1)
  assert.deepEqual(elsewhere.sessionsOf(sentBack(setCookie)), [])
})

test('a new admin key ends all sessions', () => {
  const clock = new FakeClock()
  const { setCookie } = new SessionCookie(adminKey, clock).create('root', false)
  const renewed = new SessionCookie('another-key-of-the-admin', clock)
  assert.deepEqual(renewed.sessionsOf(sentBack(setCookie)), [])
})

test('a session with another expiry or another code is invalid', () => {
  const clock = new FakeClock()
  const sessions = new SessionCookie(adminKey, clock)
  const cookie = sentBack(sessions.create('root', false).setCookie)
  const [, expiry = '', nonce = '', mac = ''] = /=(\w+)\.(\w+)\.(.+)$/.exec(cookie) ?? []
  const later = (Number.parseInt(expiry, 36) + 1).toString(36)
  const other = mac.startsWith('A') ? 'B' : 'A'
  for (const value of [
    `${later}.${nonce}.${mac}`,
    `${expiry}.00000000.${mac}`,
    `${expiry}.${nonce}.${other}${mac.slice(1)}`,
    `${expiry}.${nonce}.${mac.slice(0, -4)}`,
    `${expiry}.${nonce}.`,
    expiry,
    `${expiry}.${mac}`,
    `${expiry}.${nonce}.${mac}.${mac}`,
    `${expiry}.${nonce}.${'A'.repeat(10_000)}`,
    '',
  ]) {
    assert.deepEqual(sessions.sessionsOf(`postbote_session=${value}`), [], value)
  }
  assert.deepEqual(sessions.sessionsOf(undefined), [])
  assert.equal(sessions.sessionsOf(`other=1; ${cookie}; more=2`)[0]?.holder, 'root')
})

test('the cookie is out of reach for scripts and other sites, and contains nothing of the key', () => {
  const sessions = new SessionCookie(adminKey, new FakeClock())
  const { setCookie } = sessions.create('root', false)
  assert.match(
    setCookie,
    /^postbote_session=[0-9a-z]+\.[0-9a-f]{8}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
  )
  assert.match(sessions.create('root', true).setCookie, /^__Host-postbote_session=.*; Secure$/)
  assert(!setCookie.includes(adminKey))
})

test('a cookie that another port of the host has added neither hides the session nor takes its place', () => {
  const clock = new FakeClock()
  const sessions = new SessionCookie(adminKey, clock)
  const key = { id: '0123456789abcdef', secretTag: 'abcdefghij' } as KeyAccess
  const added = sentBack(sessions.create(key, false).setCookie)
  clock.jump(1_000)
  const own = sentBack(sessions.create('root', false).setCookie)
  clock.jump(1_000)
  const secure = sentBack(sessions.create('root', true).setCookie)
  const later = sentBack(sessions.create(key, false).setCookie)
  const holderOf = (...cookies: string[]) => sessions.sessionsOf(cookies.join('; '))[0]?.holder
  const broken = 'postbote_session=x'
  assert.equal(holderOf(...Array.from({ length: 179 }, () => broken), own), 'root')
  assert.equal(holderOf(added, own), 'root')
  assert.equal(holderOf(own, added), 'root')
  assert.equal(holderOf(later, secure), 'root')
})
