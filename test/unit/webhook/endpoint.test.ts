import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PostboteError } from '../../../src/errors.ts'
import { parseEndpoint } from '../../../src/webhook/endpoint.ts'

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

test('https on the four ports is accepted, other ports and schemes are refused by name', () => {
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

test('a URL that is no URL, has no host, blanks, or is too long is invalid', () => {
  for (const url of [
    'https://',
    'https:///x',
    'https://a b/',
    'https://exa\nmple.com',
    'https://[::1',
    'https://a:99999/',
    'https://a:0/',
    'https://%zz/',
    `https://example.com/${'x'.repeat(2_048)}`,
  ]) {
    assert.equal(refusal(url), invalid, url)
  }
  assert.equal(refusal(`https://example.com/${'x'.repeat(2_048 - 20)}`), 'accepted')
})

test('the parts of a URL are what is connected to and asked for', () => {
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

test('disguised forms of an address become the address that is judged', () => {
  assert.equal(parseEndpoint('https://0x7f.1/', { local: false }).host, '127.0.0.1')
  assert.equal(parseEndpoint('https://2130706433/', { local: false }).hostIsAddress, true)
})
