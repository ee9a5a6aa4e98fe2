import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rootCertificates } from 'node:tls'
import { trustRoots } from '../../../../src/delivery/endpoint/trust-roots.ts'
import { makeCertificate } from '../../../support/network/certificates.ts'

const [own, extra, named] = ['own', 'extra', 'named'].map((name) =>
  makeCertificate(name).cert.trim(),
)

function rootsWith(env: Record<string, string>, files: Record<string, string | undefined>) {
  return trustRoots({
    env,
    readFile: (path) => {
      const text = files[path]
      if (text === undefined) throw new Error(`ENOENT: ${path}`)
      return text
    },
  })
}

test("the system's authorities and those of NODE_EXTRA_CA_CERTS are trusted besides Node's, each once", () => {
  const known = rootCertificates[0] ?? ''
  const roots = rootsWith(
    { NODE_EXTRA_CA_CERTS: '/extra.pem' },
    {
      '/etc/pki/tls/certs/ca-bundle.crt': `# a comment\n${own}\n${known.replaceAll('\n', '\r\n')}\n`,
      '/extra.pem': extra,
    },
  )
  assert.equal(roots.length, new Set(rootCertificates).size + 2)
  assert.ok(roots.includes(own!) && roots.includes(extra!))
})

test('SSL_CERT_FILE replaces the usual bundle, and a file that cannot be read adds nothing', () => {
  const files = { '/etc/ssl/certs/ca-certificates.crt': own, '/named.pem': named }
  const roots = rootsWith({ SSL_CERT_FILE: '/named.pem', NODE_EXTRA_CA_CERTS: '/none' }, files)
  assert.ok(roots.includes(named!) && !roots.includes(own!))
  assert.equal(rootsWith({ SSL_CERT_FILE: '/none' }, files).length, rootCertificates.length)
  assert.equal(rootsWith({}, {}).length, rootCertificates.length)
})
