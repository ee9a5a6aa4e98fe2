import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addressHint,
  botIdOfTarget,
  isFilePath,
  parseTarget,
  targetOf,
} from '../../../src/http/target.ts'
import { plainTarget } from '../../../src/http/plain-target.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

const token = '123456789:AAabcdefghijklmnopqrstuvwxyz0123456'

function assertMethod(url: string, expected: object): void {
  const target = parseTarget(url)
  assert(target.kind === 'method', url)
  const { methodName, ...others } = target
  assert.equal(methodName.toLowerCase(), others.method)
  assert.deepEqual(
    others,
    { kind: 'method', token, isTest: false, method: 'getupdates', query: '', ...expected },
    url,
  )
}

test('a method is found after the token, in any case', () => {
  assertMethod(`/bot${token}/getUpdates`, {})
  assertMethod(`/bot${token}/GETUPDATES`, {})
  assertMethod(`/bot${token}/setWebHook`, { method: 'setwebhook' })
})

test('a path that a wrong address of a framework gives is explained, without its token', () => {
  const slash = /the address of the server ends with a slash too many/
  for (const url of [`//bot${token}/getMe`, `///bot${token}/getMe`, `//file/bot${token}/a`]) {
    assert.equal(parseTarget(url).kind, 'unknown')
    assert.match(addressHint(url) ?? '', slash)
  }
  for (const url of [
    `/${token}/getMe`,
    `//${token}/getMe`,
    '/123456789%3Ax/getMe',
    '/file/1:a/b',
  ]) {
    assert.equal(parseTarget(url).kind, 'unknown')
    assert.match(addressHint(url) ?? '', /got no "bot" before the token$/)
  }
  for (const url of ['/', '/favicon.ico', '/bot', '/bot123:x', '/v1/bots', '/%zz', '/getMe']) {
    assert.equal(addressHint(url), undefined, url)
  }
})

test('the query is split off unchanged', () => {
  assertMethod(`/bot${token}/getUpdates?`, {})
  assertMethod(`/bot${token}/getUpdates?offset=1&u=%3A/?`, { query: 'offset=1&u=%3A/?' })
  assertMethod(`/bot${token}/getUpdates/?a=/b`, { query: 'a=/b' })
})

test('the test namespace is a separate segment before the method', () => {
  assertMethod(`/bot${token}/test/getUpdates?a=1`, { isTest: true, query: 'a=1' })
  assertMethod(`/bot${token}/test/getUpdates/`, { isTest: true })
  assertMethod(`/bot${token}/test`, { method: 'test' })
  assertMethod(`/bot${token}/test/`, { method: 'test' })
  assertMethod(`/bot${token}/testing`, { method: 'testing' })
})

test('a trailing slash and percent-encoding are accepted', () => {
  const encoded = token.replace(':', '%3A')
  assertMethod(`/bot${token}/getUpdates/`, {})
  assertMethod(`/bot${encoded}/getUpdates`, {})
  assertMethod(`/bot${encoded}/get%55pdates`, {})
})

test('an encoded slash stays in the token, whose check refuses it', () => {
  assertMethod('/bot123%2FgetMe/getUpdates', { token: '123/getMe' })
})

test('the path of a file begins after the token and is passed on unchanged', () => {
  const file = (url: string, path: string): void =>
    assert.deepEqual(parseTarget(url), { kind: 'file', token, path }, url)
  file(`/file/bot${token}/photos/file_1.jpg?x=1/2`, 'photos/file_1.jpg')
  file(`/file/bot${token.replace(':', '%3A')}/a%20b/`, 'a%20b/')
  file(`/file/bot${token}/..`, '..')
  for (const url of [`/file/bot${token}`, '/file/bot%/a', `/FILE/bot${token}/a`, '/file/', '/file'])
    assert.deepEqual(parseTarget(url), { kind: 'unknown' }, url)
})

test('the path of a file leads nowhere else, however it is spelled', () => {
  for (const path of ['a', 'photos/file_1.jpg', 'a%20b', '%D1%8F.txt', '...', '.a', 'a..b/c:d,e'])
    assert(isFilePath(path), path)
  const dots = [
    '.',
    '..',
    'a/..',
    '../a',
    '%2e%2e/a',
    '.%2E/a',
    '%252e%252e/a',
    'a/./b',
    '..#',
    'a/..#b',
  ]
  for (const path of [
    '',
    'a/',
    '/a',
    'a//b',
    'a%2Fb',
    'a%5cb',
    'a\\b',
    '%00',
    'a%0d',
    '%zz',
    ...dots,
  ])
    assert(!isFilePath(path), path)
})

test('every other path is unknown', () => {
  const unknown = [
    '/',
    '',
    '*',
    '/bot',
    `/bot${token}`,
    `/bot${token}/`,
    '/v1/bots/5',
    '/BOT1:a/getMe',
  ]
  for (const url of [...unknown, '/bot%/getMe', '/bot1:a/%ff', '/index.html', '/%zz/x', '/%62/x']) {
    assert.deepEqual(parseTarget(url), { kind: 'unknown' }, url)
  }
})

test('the bot id is found for routing in both APIs', () => {
  assert.equal(botIdOfTarget(`/bot${token}/getUpdates`), 123_456_789)
  assert.equal(botIdOfTarget('/bot123:abc/test/getMe?x'), 123)
  assert.equal(botIdOfTarget('/file/bot123:abc/photos/a.jpg'), 123)
  assert.equal(botIdOfTarget('/v1/bots/42'), 42)
  assert.equal(botIdOfTarget('/v1/bots/42?x=1'), 42)
  assert.equal(botIdOfTarget('/v1/bots/42/updates?test=true'), 42)
  assert.equal(botIdOfTarget('/bot4503599627370495:a/getMe'), 2 ** 52 - 1)
})

test('no bot id is found in a path without a possible one', () => {
  const none = [
    '/',
    '',
    '*',
    '/metrics',
    '/bot:a/getMe',
    '/bot12/getMe',
    '/botx:a/getMe',
    '/bot012:a',
  ]
  const others = [
    '/v1/bots',
    '/v1/bots/',
    '/v1/bots/x',
    '/v1/bots/1x',
    '/v1/updates',
    '/bot%',
    '/bot%25',
  ]
  for (const url of [
    ...none,
    ...others,
    '/bot4503599627370496:a',
    `/bot${'9'.repeat(400)}:a/getMe`,
  ]) {
    assert.equal(botIdOfTarget(url), undefined, url)
  }
})

test('any text is read without an error, and a token with an id is routed by it', () => {
  const segment = fc.stringMatching(/^[bot0-9:%A-Fa-f/?.]{0,24}$/)
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        segment,
        segment.map((s) => `/bot${s}`),
      ),
      (text) => {
        const url = plainTarget(text)
        const target = parseTarget(url)
        const routed = botIdOfTarget(url)
        if (target.kind !== 'method') return
        const id = /^([1-9]\d{0,14}):/.exec(target.token)?.[1]
        if (id !== undefined) assert.equal(routed, Number(id), url)
      },
    ),
    { numRuns: drawnRuns(2_000) },
  )
})

test('the target of a request is parsed once', () => {
  const request = { url: '/bot1:x/getMe' }
  const target = targetOf(request)
  assert.deepEqual(target, parseTarget(request.url))
  assert.equal(targetOf(request), target)
})
