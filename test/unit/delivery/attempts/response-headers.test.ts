import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SecretFinder } from '../../../../src/kit/text/secret-finder.ts'
import {
  type ResponseHeaders,
  shownHeaderBytesMax,
  shownHeaders,
  shownHeadersBytesMax,
  shownHeadersIn,
  shownHeadersMax,
} from '../../../../src/delivery/attempts/response-headers.ts'

const secret = 'opaque-value-of-the-bot'
const path = '/hooks/AAsecretOfTheBot'
const secrets = new SecretFinder([secret, path, 'AAsecretOfTheBot'])

function shown(headers: ResponseHeaders): Readonly<Record<string, string>> {
  const text = shownHeaders(headers, secrets)
  const list = text === undefined ? [] : shownHeadersIn(text)
  return Object.fromEntries(list.map(({ name, value }) => [name, value]))
}

test('headers are shown in their order, and several of a name as one', () => {
  const headers = { server: 'nginx', 'content-type': 'text/plain', via: ['1.1 a', '1.1 b'] }
  assert.deepEqual(shown(headers), { ...headers, via: '1.1 a,1.1 b' })
  assert.equal(shownHeaders({}, secrets), undefined)
  assert.deepEqual(shown({ 'x-empty': '' }), { 'x-empty': '' })
})

test('cookies, credentials, tokens and keys are left out, and the date, in which responses differ', () => {
  const names = [
    'set-cookie',
    'Set-Cookie',
    'authorization',
    'www-authenticate',
    'proxy-authorization',
    'x-auth',
    'x-api-key',
    'x-telegram-bot-api-secret-token',
    'x-csrf-token',
    'x-session-id',
    'webhook-signature',
    'link',
    'date',
  ]
  const headers = Object.fromEntries(names.map((name) => [name, 'x']))
  assert.deepEqual(shown({ ...headers, 'keep-alive': 'timeout=5' }), { 'keep-alive': 'timeout=5' })
})

test('secrets are blanked out, wherever a header has them', () => {
  const token = `4711:${'A'.repeat(35)}`
  assert.deepEqual(
    shown({
      'x-echo': `got ${secret} at ${path}`,
      'x-bot': `bot${token}`,
      [`x-${secret}`]: 'in the name',
    }),
    { 'x-echo': 'got *** at ***', 'x-bot': 'bot***', 'x-***': 'in the name' },
  )
})

test('of the address of a redirect only the host is shown', () => {
  const location = (value: string): string | undefined => shown({ location: value })['location']
  assert.equal(
    location('https://user:pass@bot.example:8443/s3cr?t=1#x'),
    'https://bot.example:8443/***',
  )
  assert.equal(location('http://bot.example?t=1'), 'http://bot.example/***')
  assert.equal(location('/s3cr/'), '***')
  assert.equal(shown({ 'content-location': '/s3cr' })['content-location'], '***')
})

test('control characters are replaced, and a value cannot begin another header', () => {
  assert.deepEqual(shown({ 'x-a': 'b\u001b[31m\u0007\u0085c', 'x-b': 'd\r\nx-c: e' }), {
    'x-a': 'b\ufffd[31m\ufffd\ufffdc',
    'x-b': 'd  x-c: e',
  })
})

test('there are at most 16 headers, 256 bytes of each and 1 KiB of all', () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, nth) => [`x-${nth}`, '1']))
  assert.equal(Object.keys(shown(many)).length, shownHeadersMax)
  const long = Object.fromEntries(
    Array.from({ length: 16 }, (_, nth) => [`x-${nth}`, 'y'.repeat(16_000)]),
  )
  const text = shownHeaders(long, secrets) ?? ''
  assert(Buffer.byteLength(text) <= shownHeadersBytesMax, `${Buffer.byteLength(text)}`)
  const lines = text.split('\n')
  assert.deepEqual(
    lines.map((line) => line.length),
    [256, 256, 256, 253],
  )
  assert.equal(shownHeaderBytesMax, 256)
  assert.deepEqual(shown({ ['x'.repeat(65)]: 'no honest header has such a name', server: 'a' }), {
    server: 'a',
  })
})

test('a secret that the bound would cut is not shown in part', () => {
  const value = `${'y'.repeat(shownHeaderBytesMax - 8)}${secret}`
  assert.match(shown({ 'x-a': value })['x-a'] ?? '', /^y+\*\*\*$/)
})
