import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  CertificateError,
  certificateWarnings,
  readCertificates,
} from '../../../src/worker/read-certificates.ts'
import { type Config, parseConfig } from '../../../src/config/config.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import { issueCertificate, makeCertificate } from '../../support/network/certificates.ts'

const pair = makeCertificate('bots.example')
const other = makeCertificate('bots.example')

function config(cert: string, key: string): Config {
  return parseConfig({
    argv: ['--http-cert', cert, '--http-cert-key', key],
    env: {},
    readFile: () => '',
  })
}

function setUp(t: TestContext) {
  const directory = temporaryDirectory(t)
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 })
    return join(directory, name)
  }
  return { file }
}

test('a certificate with its key is read, and intermediate ones stay with it', (t) => {
  const { file } = setUp(t)
  const chain = pair.cert + other.cert
  const certificates = readCertificates(config(file('cert', chain), file('key', pair.key)))
  assert.deepEqual(certificates, { bot: { cert: chain, key: pair.key } })
})

test('files that are no pair are refused by their names and options, without their content', (t) => {
  const { file } = setUp(t)
  const [cert, key] = [file('cert', pair.cert), file('key', pair.key)]
  const wrong: readonly [cert: string, key: string, expected: RegExp][] = [
    [
      cert,
      file('other', other.key),
      /^--http-cert .*cert and --http-cert-key .*other: .*does not belong/,
    ],
    [file('bad', 'x'), key, /^--http-cert .*bad .*in PEM/],
    [
      file('cut', `${pair.cert}-----BEGIN CERTIFICATE-----\nAAAA\n`),
      key,
      /^--http-cert .*cut .*in PEM/,
    ],
    [cert, cert, /in PEM/],
    [cert, `${key}-gone`, /^--http-cert-key .*gone cannot be read/],
  ]
  for (const [first, second, expected] of wrong) {
    assert.throws(
      () => readCertificates(config(first, second)),
      (error: Error) => {
        assert(error instanceof CertificateError)
        assert.match(error.message, expected)
        return !error.message.includes('BEGIN')
      },
    )
  }
})

test('a key that everybody can read and an expired certificate are named', (t) => {
  const { file } = setUp(t)
  const old = issueCertificate({ name: 'x', from: '20200101000000Z', until: '20200201000000Z' })
  const options = config(file('cert', old.cert), file('key', old.key))
  const certificates = readCertificates(options)
  assert.deepEqual(certificateWarnings(options, certificates, Date.UTC(2020, 0, 15)), [])
  chmodSync(join(options.httpCertKey ?? ''), 0o644)
  const warnings = certificateWarnings(options, certificates, Date.UTC(2020, 1, 2))
  assert.match(warnings.join('\n'), /read .*key: .*chmod o=\n.*cert expired on .*2020.*: renew it$/)
  const early = certificateWarnings(options, certificates, Date.UTC(2019, 1, 2))
  assert.match(early[1] ?? '', /cert is not valid before .*2020/)
  const both = { ...options, adminCert: options.httpCert, adminCertKey: options.httpCertKey }
  const twice = certificateWarnings(both, readCertificates(both), Date.UTC(2020, 1, 2))
  assert.deepEqual(twice, warnings)
})
