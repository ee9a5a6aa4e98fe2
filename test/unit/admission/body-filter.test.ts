import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { PrivateApiGuard } from '../../../src/access/private-api-guard.ts'
import { makeToken } from '../../../src/api/token.ts'
import { BodyFilter } from '../../../src/admission/body-filter.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { markConnection, takeOrigin } from '../../../src/http/connection-origin.ts'

const guard = new PrivateApiGuard({
  adminKey: 'the-key-of-the-admin',
  hosts: [],
  clock: new FakeClock(),
})
const token = makeToken(1_000, (count) => Buffer.alloc(count, 7))
const judge = new BodyFilter({ guard, filter: undefined, hasUpstream: false })

function requestOf(url: string, headers: Record<string, string> = {}, clientAddress = '1.2.3.4') {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these fields are used
  const request = {
    method: 'POST',
    url,
    headers,
    rawHeaders: [],
    socket: {},
  } as unknown as IncomingMessage
  markConnection(request.socket, { listener: 'bot', clientAddress })
  takeOrigin(request, 'bot')
  return request
}

test('a body for the bot API is read for an own method with a token that a bot may have', () => {
  const mistyped = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
  for (const [url, isWanted] of [
    [`/bot${token}/getUpdates`, true],
    [`/bot${token.replace(':', '%3A')}/test/SETWEBHOOK?url=`, true],
    [`/bot${mistyped}/getUpdates`, false],
    [`/bot1000:x/getUpdates`, false],
    [`/bot${token}`, false],
    [`/bot${token}/sendMessage`, false],
    [`/file/bot${token}/photo.jpg`, false],
  ] as const) {
    assert.equal(judge.isWanted('bot', requestOf(url)), isWanted, url)
  }
  const put = Object.assign(requestOf(`/bot${token}/getUpdates`), { method: 'PUT' })
  assert.equal(judge.isWanted('bot', put), false)
})

test('with --foreign-tokens, a body is read with a token that another server may have made', () => {
  const foreign = `1000:${'x'.repeat(46)}`
  const url = `/bot${foreign}/getUpdates`
  assert.equal(judge.isWanted('bot', requestOf(url)), false)
  // An owner on another node may have the option already.
  assert.equal(judge.isWanted('bot', requestOf(url), true), true)
  const wide = new BodyFilter({
    guard,
    filter: undefined,
    takesForeignTokens: true,
    hasUpstream: false,
  })
  assert.equal(wide.isWanted('bot', requestOf(url)), true)
  assert.equal(wide.isWanted('bot', requestOf(`/bot1000:${'x'.repeat(34)}/getUpdates`)), false)
})

test("a body for another server's bot is not read, and one for the upstream server is", () => {
  const filtered = new BodyFilter({
    guard,
    filter: { remainder: 1, modulus: 2 },
    hasUpstream: true,
  })
  assert.equal(filtered.isWanted('bot', requestOf(`/bot${token}/getUpdates`)), false)
  const odd = makeToken(1_001, (count) => Buffer.alloc(count, 7))
  assert.equal(filtered.isWanted('bot', requestOf(`/bot${odd}/sendMessage`)), true)
  assert.equal(filtered.isWanted('bot', requestOf(`/bot${odd}x/sendMessage`)), false)
})

test('a body for the private API is read from a client with the key, under an allowed Host', () => {
  const path = '/v1/bots/1000/updates'
  const authorization = 'Bearer the-key-of-the-admin'
  for (const [headers, address, isWanted] of [
    [{ authorization, host: 'localhost' }, '127.0.0.1', true],
    [{ authorization: 'Bearer no', host: 'localhost' }, '127.0.0.1', false],
    [{ host: 'localhost' }, '127.0.0.1', false],
    [{ authorization, host: 'evil.example' }, '127.0.0.1', false],
    [{ authorization, host: 'evil.example' }, '', true],
  ] as const) {
    assert.equal(judge.isWanted('private', requestOf(path, headers, address)), isWanted)
  }
})
