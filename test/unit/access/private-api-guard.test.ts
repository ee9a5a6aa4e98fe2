import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dashboardHeader, PrivateApiGuard } from '../../../src/access/private-api-guard.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

const adminKey = 'the-key-of-the-admin'
const clock = new FakeClock()
const guard = new PrivateApiGuard({ adminKey, hosts: ['ops.example'], clock })
const cookie = guard.sessions.create('root', false).setCookie.split(';', 1)[0] ?? ''
const authorization = `Bearer ${adminKey}`
const unauthorized = { code: 'UNAUTHORIZED' }

test('the admin key opens every call, and a session those that only read', () => {
  guard.checkAccess({ method: 'DELETE', headers: { authorization } })
  guard.checkAccess({ method: 'GET', headers: { cookie } })
  guard.checkAccess({ method: 'HEAD', headers: { cookie } })
  assert.throws(() => guard.checkAccess({ method: 'GET', headers: {} }), unauthorized)
})

test('a call that may change something needs the header of the dashboard beside a session', () => {
  for (const method of ['POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']) {
    const refused = { code: 'CROSS_SITE_REQUEST' }
    assert.throws(() => guard.checkAccess({ method, headers: { cookie } }), refused, method)
    guard.checkAccess({ method, headers: { cookie, [dashboardHeader]: '1' } })
  }
})

test('the header of the dashboard alone opens nothing', () => {
  const headers = { [dashboardHeader]: '1' }
  assert.throws(() => guard.checkAccess({ method: 'GET', headers }), unauthorized)
})

test('a wrong key is refused even beside a session', () => {
  const headers = { authorization: 'Bearer wrong', cookie, [dashboardHeader]: '1' }
  assert.throws(() => guard.checkAccess({ method: 'GET', headers }), unauthorized)
  assert.equal(guard.holderOf({ method: 'GET', headers }), undefined)
})

test('a session cannot stand for the key where the key itself is needed', () => {
  assert.throws(() => guard.checkKey(undefined), unauthorized)
  guard.checkKey(authorization)
})

test('a Host that a web page could rebind is refused', () => {
  for (const host of ['evil.example', '', undefined, 'localhost.evil.example']) {
    assert.throws(() => guard.checkHost(host), { code: 'BAD_HOST' })
  }
  for (const host of ['localhost:8082', '127.0.0.1', '[::1]:8082', 'OPS.example:1']) {
    guard.checkHost(host)
  }
})
