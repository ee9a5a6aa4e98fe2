import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextSteps, nextStepsOfAll } from '../../../src/cli/next-steps.ts'
import { describeStatus } from '../../../src/delivery/attempts/classify-response.ts'
import { causeOfFailure, failureOf, tlsFailureOf } from '../../../src/delivery/attempts/failure.ts'
import { troubleCauseOf } from '../../../src/delivery/trouble-advice.ts'

function failing(message: string): ReturnType<typeof troubleCauseOf> {
  const cause = causeOfFailure(message, 'answers')
  return troubleCauseOf('failing', `${cause}; 3 failures in 12 s, no success yet`)
}

function coded(code: string): Error {
  return Object.assign(new Error(), { code })
}

test('each status and each failure of a connection has its cause', () => {
  for (const [status, cause] of [
    [301, 'redirect'],
    [302, 'redirect'],
    [307, 'redirect'],
    [400, 'invalid'],
    [401, 'refused'],
    [403, 'refused'],
    [404, 'no_path'],
    [410, 'gone'],
    [500, 'program'],
    [503, 'overload'],
  ] as const) {
    assert.equal(failing(describeStatus(status)), cause, `${status}`)
  }
  for (const [code, cause] of [
    ['ECONNREFUSED', 'connection'],
    ['ECONNRESET', 'closed'],
    ['EHOSTUNREACH', 'connection'],
    ['ETIMEDOUT', 'connection'],
    ['UND_ERR_SOCKET', 'closed'],
    ['UND_ERR_HEADERS_TIMEOUT', 'late'],
    ['ENOTFOUND', 'name'],
    ['EAI_AGAIN', 'name'],
    ['CERT_HAS_EXPIRED', 'certificate_expired'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate_untrusted'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate_other_host'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
    ['UND_ERR_HEADERS_OVERFLOW', 'no_http'],
  ] as const) {
    assert.equal(failing(failureOf(coded(code)).message), cause, code)
  }
  assert.equal(failing(tlsFailureOf(coded('ECONNRESET')).message), 'tls')
  assert.equal(failing('IP address 10.0.0.1 is reserved'), 'addresses')
  assert.equal(failing('Proxy: wrong response'), 'proxy')
  assert.equal(failing('something new'), 'unknown')
})

test('the causes of bots that poll are told apart, and a bot that is well has none', () => {
  assert.equal(troubleCauseOf(null, 'two clients poll at once; 4 refusals'), 'conflict')
  assert.equal(troubleCauseOf('unpolled', 'last polled 5 min ago; 20 updates wait'), 'unpolled')
  assert.equal(
    troubleCauseOf('degraded', 'polls confirm nothing; they get the same'),
    'unconfirmed',
  )
  assert.equal(troubleCauseOf('degraded', 'endpoint does not respond; 1 chat waits'), 'late')
  assert.equal(troubleCauseOf('behind', 'updates are 29 min late; 20 updates wait'), 'behind')
  assert.equal(troubleCauseOf(null, 'last polled 3 s ago'), undefined)
  assert.equal(troubleCauseOf('healthy', 'the last attempt succeeded'), undefined)
  assert.equal(troubleCauseOf('paused', 'paused by the operator'), undefined)
})

test('what to do next is a sentence and a command on a line of its own, once for each cause', () => {
  const redirects = { health: 'failing', health_reason: 'endpoint answers 302 Found; 3 failures' }
  assert.deepEqual(nextSteps(redirects, '108 --test'), [
    '',
    'next: Set the webhook to the address to which the endpoint redirects: deliveries do not follow redirects.',
    'postbote webhook check 108 --test',
  ])
  const polled = { health: null, health_reason: 'two clients poll at once; 4 refusals' }
  assert.equal(nextSteps(polled, '112').length, 2, 'bots show does not name itself')
  assert.deepEqual(nextSteps({ health: 'healthy', health_reason: null }, '101'), [])
  const all = nextStepsOfAll([
    { bot_id: 108, username: 'a', ...redirects },
    { bot_id: 109, username: 'b', health: 'failing', health_reason: 'endpoint answers 500 X' },
    { bot_id: 110, username: 'c', ...redirects },
    { bot_id: 111, username: 'd', health: 'healthy' },
  ])
  assert.match(all[0] ?? '', /^next for @a and 1 other: Set the webhook/)
  assert.deepEqual(
    [all[1], all[3]],
    ['postbote webhook check 108', 'postbote attempts 109 --bodies'],
  )
  assert.equal(all.length, 4)
  const statuses = [
    '302 Found',
    '403 Forbidden',
    '404 Not Found',
    '410 Gone',
    '429 X',
    '500 X',
    '418 X',
  ]
  const many = statuses.map((status, nth) => ({
    bot_id: 200 + nth,
    username: `bot_${nth}`,
    health: 'failing',
    health_reason: `endpoint answers ${status}; 3 failures`,
  }))
  assert.equal(nextStepsOfAll(many).at(-1), '2 other causes: postbote bots show ID')
})
