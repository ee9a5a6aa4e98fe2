import type { LinkSecurity } from '../../../../src/process/node-links.ts'
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  clientTlsOptions,
  clusterKeyBytesMin,
  linkSecurityFrom,
  serverTlsOptions,
} from '../../../../src/links/link/link-security.ts'

const keyOf = (content: string | Buffer): LinkSecurity =>
  linkSecurityFrom('/etc/cluster.key', () => Buffer.from(content))

test('a key is derived from any content, and depends on all of it but the end of its last line', () => {
  const text = 'correct horse battery'
  assert.deepEqual(keyOf(text), keyOf(`${text}\n`))
  assert.deepEqual(keyOf(text), keyOf(`${text}\r\n`))
  for (const other of ['correct horse batterz', `x${text}`, `${text} `, `${text}\nx`]) {
    assert.notDeepEqual(keyOf(text), keyOf(other))
  }
  assert.equal(keyOf(randomBytes(100)).key.length, 32)
})

test('a key has the same value in every version', () => {
  assert.equal(
    Buffer.from(keyOf('0123456789abcdef').key).toString('hex'),
    '1a2d28f5b89982f0784e282c9df432dd83a11f424e58f00574d68e6e3b530ea7',
  )
})

test('a key that is too short is refused, and the error has its path and not its content', () => {
  const short = 'x'.repeat(clusterKeyBytesMin - 1)
  for (const content of ['', '\n\n', short, `${short}\n`]) {
    assert.throws(
      () => keyOf(content),
      ({ message }: Error) =>
        /\/etc\/cluster\.key: expected at least 16 bytes/.test(message) && !message.includes('xxx'),
    )
  }
  assert.doesNotThrow(() => keyOf(`${short}x`))
})

test('a file that cannot be read is named', () => {
  assert.throws(
    () => linkSecurityFrom('/nowhere/k', (path) => readFileSync(path)),
    /\/nowhere\/k cannot be read: ENOENT/,
  )
})

test('a security can be passed to workers, and gives the same options there', () => {
  const security = keyOf('0123456789abcdef')
  const cloned = structuredClone(security)
  // The channel between processes clones with node:v8, which keeps typed arrays, too.
  assert.deepEqual(cloned, security)
  assert.deepEqual(Object.keys(serverTlsOptions(cloned)), Object.keys(serverTlsOptions(security)))
})

test('the options of both sides accept only TLS 1.3, the protocol of links, and no authority', () => {
  const security = keyOf('0123456789abcdef')
  for (const options of [serverTlsOptions(security), clientTlsOptions(security)]) {
    assert.deepEqual(
      [options.minVersion, options.maxVersion, options.ALPNProtocols, options.ca],
      ['TLSv1.3', 'TLSv1.3', ['postbote-link/1'], []],
    )
  }
  assert.equal(clientTlsOptions(security).rejectUnauthorized, true)
})
