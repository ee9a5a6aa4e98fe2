import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { compileBlocklist, isBlocked } from '../../../../src/http/blocklist.ts'
import { hostOfWebhook, tidyUrl } from '../../../../src/http/webhook-url.ts'
import { parseEndpoint } from '../../../../src/delivery/endpoint/endpoint.ts'

function refusal(url: string, local = false): string {
  try {
    parseEndpoint(url, { local })
  } catch (error) {
    assert.ok(error instanceof PostboteError)
    assert.equal(error.status, 400)
    return error.message
  }
  return 'accepted'
}

const ports = 'Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443'
const https = 'Bad Request: bad webhook: An HTTPS URL must be provided for webhook'
const invalid = 'Bad Request: invalid webhook URL specified'

test('https on the four ports is accepted, and other ports and schemes are refused with their names', () => {
  for (const port of ['', ':443', ':80', ':88', ':8443']) {
    assert.equal(refusal(`https://example.com${port}/x`), 'accepted')
  }
  assert.equal(refusal('https://example.com:8080/'), ports)
  assert.equal(refusal('http://example.com/'), https)
  assert.equal(refusal('ftp://example.com/', true), https)
})

test('with --local http and any port are accepted', () => {
  assert.equal(refusal('http://localhost:3000/', true), 'accepted')
  assert.equal(refusal('https://10.0.0.1:9999/', true), 'accepted')
})

test('a URL that is malformed, has no host, contains spaces, or is too long is invalid', () => {
  for (const url of [
    'https://',
    'https:///x',
    'https://a b/',
    'https://exa\nmple.com',
    'https://[::1',
    'https://[fe80::1%eth0]/',
    'https://[fe80::1%25eth0]/',
    'https://a:99999/',
    'https://a:0/',
    'https://%zz/',
    `https://example.com/${'x'.repeat(2_048)}`,
  ]) {
    assert.equal(refusal(url), invalid, url)
  }
  assert.equal(refusal(`https://example.com/${'x'.repeat(2_048 - 20)}`), 'accepted')
})

test('the parts of a URL decide on the connection and the request', () => {
  assert.deepEqual(
    parseEndpoint('https://us%3Aer:p%40ss@Bücher.example/a%20b?c=d#e', { local: false }),
    {
      origin: 'https://xn--bcher-kva.example',
      secure: true,
      host: 'xn--bcher-kva.example',
      hostIsAddress: false,
      port: 443,
      path: '/a%20b?c=d',
      authorization: `Basic ${Buffer.from('us:er:p@ss').toString('base64')}`,
    },
  )
  const address = parseEndpoint('https://[2606:4700::1]:88', { local: false })
  assert.equal(address.host, '2606:4700::1')
  assert.equal(address.hostIsAddress, true)
  assert.equal(address.path, '/')
})

test('path and query are sent as they are written, and only what no URL may have is encoded', () => {
  const paths: Readonly<Record<string, string>> = {
    "/a/../b/./c?d='e'&f=..": "/a/../b/./c?d='e'&f=..",
    '/%2e%2E/%2f/%41': '/%2e%2E/%2f/%41',
    '/..': '/..',
    '//a//': '//a//',
    '?next=http://x/y': '/?next=http://x/y',
    '/a?next=http://x#y': '/a?next=http://x',
    '#y': '/',
    '/a b\tc\nd\u007fe': '/a%20b%09c%0Ad%7Fe',
    '/\u00e9/\u{1f600}?\u00e9=\u2028x': '/%C3%A9/%F0%9F%98%80?%C3%A9=%E2%80%A8x',
    '/\ud800': '/%EF%BF%BD',
    '/"<>\\^`{|}': '/%22%3C%3E%5C%5E%60%7B%7C%7D',
    '\\a': '/%5Ca',
    "/-._~:/?[]@!$&'()*+,;=%": "/-._~:/?[]@!$&'()*+,;=%",
  }
  for (const [given, path] of Object.entries(paths)) {
    for (const scheme of ['https://', '']) {
      assert.equal(parseEndpoint(`${scheme}bot.example${given}`, { local: false }).path, path)
    }
  }
})

test('blanks around a URL are dropped, and those inside are encoded, in its stored form, too', () => {
  for (const around of [' ', '\n', '\r\n', '\t \u00a0\ufeff']) {
    const given = `${around}https://bot.example/a${around}`
    assert.equal(tidyUrl(given), 'https://bot.example/a')
    assert.equal(parseEndpoint(given, { local: false }).path, '/a')
    assert.equal(hostOfWebhook(given), 'bot.example')
  }
  assert.equal(tidyUrl('https://b.example/a b\r\nc'), 'https://b.example/a%20b%0D%0Ac')
  for (const url of ['', ' ', '\n', 'https:// bot.example/', 'https://bot.example /']) {
    assert.equal(refusal(url), invalid, JSON.stringify(url))
  }
  assert.equal(refusal(`${' '.repeat(5_000)}https://bot.example/`), 'accepted')
  assert.equal(refusal(`https://bot.example/${' '.repeat(700)}x`), invalid, 'it is too long')
})

const ranges = compileBlocklist({ local: false, block: [], allow: [] })

test('a reserved address is used and judged however its URL spells it', () => {
  const spellings: Readonly<Record<string, readonly string[]>> = {
    '127.0.0.1': [
      'https://127.0.0.1/',
      'https://127.0.0.1./',
      'https://127.1/',
      'https://127.0.1/',
      'https://2130706433/',
      'https://0x7f000001/',
      'https://0x7F.1/',
      'https://0x7f.0x0.0x0.0x1/',
      'https://017700000001/',
      'https://0177.0.0.01/',
      'https://127.0.0.1:8443/x',
      'https://%31%32%37.0.0.1/',
      'https://１２７.０.０.１/',
      'https://127。0。0。1/',
      'https://127．0．0．1/',
      'https://①②⑦.⓪.⓪.①/',
      'https://example.com@127.0.0.1/',
      'https://example.com:443@127.0.0.1/',
      'https://a@example.com@127.0.0.1/',
      'https://127.0.0.1#@example.com/',
      'https://127.0.0.1?@example.com/',
      'https://127.0.0.1\\@example.com/',
      'https://example.com%40x:y@127.0.0.1:88/',
      'HTTPS://127.0.0.1/',
      '127.0.0.1/hook',
    ],
    '10.0.0.1': ['https://167772161/', 'https://012.0.0.1/', 'https://0xa000001/', 'https://10.1/'],
    '169.254.169.254': ['https://2852039166/', 'https://0xA9FEA9FE/', 'https://169.254.43518/'],
    '0.0.0.0': ['https://0/', 'https://0x/', 'https://0.0.0.0/', 'https://00000000000/'],
    '255.255.255.255': ['https://4294967295/'],
    '::1': ['https://[::1]/', 'https://[0:0:0:0:0:0:0:1]/', 'https://x@[::1]:443/'],
    '::ffff:7f00:1': [
      'https://[::ffff:127.0.0.1]/',
      'https://[::ffff:7f00:1]/',
      'https://[0:0:0:0:0:FFFF:7F00:0001]/',
    ],
    '64:ff9b::a00:1': ['https://[64:ff9b::10.0.0.1]/', 'https://[64:ff9b::a00:1]:8443/'],
    '2002:a00:1::': ['https://[2002:a00:1::]/', 'https://[2002:0a00:0001:0:0:0:0:0]/'],
    'fe80::1': ['https://[fe80::1]/'],
  }
  for (const [host, urls] of Object.entries(spellings)) {
    assert.equal(isBlocked(ranges, host), true)
    for (const url of urls) {
      const endpoint = parseEndpoint(url, { local: false })
      assert.deepEqual([endpoint.host, endpoint.hostIsAddress], [host, true], url)
    }
  }
})

test('a host that looks like an address or a name and is neither is refused', () => {
  for (const url of [
    'https://256.0.0.1/',
    'https://1.2.3.4.5/',
    'https://4294967296/',
    'https://0x1ffffffff/',
    'https://127.0.0.1%00.example.com/',
    'https://127.0.0.1%2f.example.com/',
    'https://[fe80::1%25eth0]/',
    'https://[fe80::1%eth0]/',
    'https://[::ffff:127.1]/',
    'https://[::1',
    'https://::1/',
    'https://exa%20mple.com/',
    'https://exa<mple.com/',
    'https://./',
    'https://../',
    'https://.example.com/',
    'https://example..com/',
    'https://user@/',
    'https:\\\\127.0.0.1/',
    'https:127.0.0.1/',
    'https:/127.0.0.1/',
  ]) {
    assert.equal(refusal(url), invalid, url)
  }
})

test('the host is the name after the userinfo, in ASCII', () => {
  const hosts: Readonly<Record<string, string>> = {
    'https://127.0.0.1@example.com/': 'example.com',
    'https://10.0.0.1:80@example.com:443/': 'example.com',
    'https://127.0.0.1%2F@example.com/': 'example.com',
    'https://EXAMPLE.com./': 'example.com.',
    'https://bücher.example/': 'xn--bcher-kva.example',
    'https://BÜCHER.example./': 'xn--bcher-kva.example.',
    'https://xn--bcher-kva.example/': 'xn--bcher-kva.example',
    'https://пример.испытание/': 'xn--e1afmkfd.xn--80akhbyknj4f',
    'https://example。com/': 'example.com',
    'https://ｅｘａｍｐｌｅ.com/': 'example.com',
    'https://127.0.0.1.example.com/': '127.0.0.1.example.com',
    'https://faß.de/': 'xn--fa-hia.de',
    'https://ex\u00adample.com/': 'example.com',
  }
  for (const [url, host] of Object.entries(hosts)) {
    const endpoint = parseEndpoint(url, { local: false })
    assert.deepEqual([endpoint.host, endpoint.hostIsAddress], [host, false], url)
  }
})
