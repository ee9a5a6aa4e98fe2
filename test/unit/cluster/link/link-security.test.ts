import type { LinkSecurity } from '../../../../src/cluster/node-links.ts'
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  clientTlsOptions,
  clusterKeyBytesMin,
  linkSecurityFrom,
  serverTlsOptions,
} from '../../../../src/cluster/link/link-security.ts'
import { issueCertificate } from '../../../support/network/certificates.ts'

const keyOf = (content: string | Buffer): LinkSecurity =>
  linkSecurityFrom({ key: '/etc/cluster.key' }, () => Buffer.from(content))

const authority = issueCertificate({ name: 'cluster', isAuthority: true })
const { cert, key: certKey } = issueCertificate({ name: 'node', issuer: authority })

function fromPem(pem: { readonly cert?: string; readonly certKey?: string; readonly ca?: string }) {
  const contents = new Map(Object.entries({ cert, certKey, ca: authority.cert, ...pem }))
  const files = { cert: 'cert', certKey: 'certKey', ca: 'ca' }
  return linkSecurityFrom(files, (path) => Buffer.from(contents.get(path) ?? ''))
}

test('a key is derived from any content, and depends on all of it but the end of its last line', () => {
  const text = 'correct horse battery'
  assert.deepEqual(keyOf(text), keyOf(`${text}\n`))
  assert.deepEqual(keyOf(text), keyOf(`${text}\r\n`))
  for (const other of ['correct horse batterz', `x${text}`, `${text} `, `${text}\nx`]) {
    assert.notDeepEqual(keyOf(text), keyOf(other))
  }
  const security = keyOf(randomBytes(100))
  assert(security.kind === 'key')
  assert.equal(security.key.length, 32)
})

test('a key has the same value in every version', () => {
  const security = keyOf('0123456789abcdef')
  assert(security.kind === 'key')
  assert.equal(
    Buffer.from(security.key).toString('hex'),
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
    () => linkSecurityFrom({ key: '/nowhere/k' }, (path) => readFileSync(path)),
    /\/nowhere\/k cannot be read: ENOENT/,
  )
})

test('certificates that cannot be used together are refused, without a part of a key in the error', () => {
  const other = issueCertificate({ name: 'other' })
  const broken = certKey.replace(/\n.{8}/, '\nAAAAAAAA')
  const unusable = [
    { certKey: other.key },
    { certKey: '' },
    { certKey: broken },
    { certKey: cert },
    { cert: '' },
    { cert: certKey },
    // Without an authority, node:tls would trust those of the public.
    { ca: '' },
    { ca: 'none' },
    { ca: certKey },
  ]
  const secrets = [certKey, other.key].map((pem) => pem.split('\n')[1] ?? '')
  for (const pem of unusable) {
    assert.throws(
      () => fromPem(pem),
      ({ message }: Error) =>
        message.startsWith('cert, certKey and ca: expected a certificate') &&
        !secrets.some((secret) => message.includes(secret.slice(0, 8))),
    )
  }
  assert.doesNotThrow(() => fromPem({}))
})

test('a security can be passed to workers, and gives the same options there', () => {
  for (const security of [keyOf('0123456789abcdef'), fromPem({})]) {
    const cloned = structuredClone(security)
    // The channel between processes clones with node:v8, which keeps typed arrays, too.
    assert.deepEqual(cloned, security)
    assert.deepEqual(Object.keys(serverTlsOptions(cloned)), Object.keys(serverTlsOptions(security)))
  }
})

test('the options of both sides accept only TLS 1.3, the protocol of links, and no public authority', () => {
  for (const security of [keyOf('0123456789abcdef'), fromPem({})]) {
    for (const options of [serverTlsOptions(security), clientTlsOptions(security)]) {
      assert.deepEqual(
        [options.minVersion, options.maxVersion, options.ALPNProtocols],
        ['TLSv1.3', 'TLSv1.3', ['postbote-link/1']],
      )
      assert(Array.isArray(options.ca))
    }
    assert.equal(clientTlsOptions(security).rejectUnauthorized, true)
  }
  const server = serverTlsOptions(fromPem({}))
  assert.deepEqual([server.requestCert, server.rejectUnauthorized], [true, true])
})
