import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import {
  certificateBlockBytesMax,
  certificateBlocksBytesMax,
  certificateBytesMax,
  certificatesMax,
  checkCertificates,
  readCertificates,
} from '../../../../src/delivery/endpoint/certificate.ts'
import { makeCertificate } from '../../../support/network/certificates.ts'

const { cert, key } = makeCertificate('localhost')
const kept = `${new X509Certificate(cert).toString().trim()}\n`
const [begin, end] = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----']

function block(contentBytes: number): string {
  return `${begin}${'A'.repeat(contentBytes)}${end}\n`
}

function derOf(pem: string): Buffer {
  return Buffer.from(pem.split('\n').slice(1, -2).join(''), 'base64')
}

function read(upload: string): string {
  return readCertificates(Buffer.from(upload))
}

function assertRefused(upload: string, message: RegExp): void {
  assert.throws(() => read(upload), { code: 'BAD_WEBHOOK', message })
}

test('a certificate has the same text however it is written, which is that of OpenSSL', () => {
  const oneLine = `${begin} ${cert.split('\n').slice(1, -2).join('')}${end}`
  for (const upload of [
    cert,
    cert.replaceAll('\n', '\r\n'),
    `Subject: x\n\n${cert}\nend`,
    oneLine,
  ]) {
    assert.equal(read(upload), kept)
  }
  assert.equal(read(`${cert}between${cert}`), kept + kept)
  checkCertificates(kept + kept)
})

test('an upload that is no certificate is refused, immediately for its form, and for its content when it is checked', () => {
  assertRefused('hello', /certificate is not in PEM format/)
  assertRefused(cert.slice(0, -10), /certificate is not in PEM format/)
  assertRefused(`${cert}\n${key}`, /is not a certificate/)
  assertRefused(cert.replace('\n', '\n-\n'), /cannot be parsed/)
  const der = derOf(cert)
  // OpenSSL appends its trust settings to this certificate; they would be dropped silently.
  const trust = ['x509', '-addtrust', 'serverAuth', '-trustout']
  const trusted = execFileSync('openssl', trust, { input: cert, encoding: 'utf8' })
  const hidden = Buffer.concat([Buffer.from(`0\n${key}\n`), Buffer.from(cert)])
  for (const bytes of [
    Buffer.from('AAAA'),
    der.subarray(1),
    Buffer.concat([der, der]),
    hidden,
    derOf(trusted),
  ]) {
    const pem = read(`${begin}\n${bytes.toString('base64')}\n${end}`)
    assert.throws(() => checkCertificates(pem), {
      code: 'BAD_WEBHOOK',
      message: /cannot be parsed/,
    })
  }
})

test('an upload has at most 16 blocks, and each one and all together have a limit in bytes', () => {
  assert.equal(read(cert.repeat(certificatesMax)).length, certificatesMax * kept.length)
  assertRefused(cert.repeat(certificatesMax + 1), /too many parts/)
  read(block(certificateBlockBytesMax))
  assertRefused(block(certificateBlockBytesMax + 4), /too large/)
  const third = block(certificateBlocksBytesMax / 6)
  read(third.repeat(5))
  assertRefused(third.repeat(6), /too large/)
  const large = Buffer.alloc(certificateBytesMax + 1)
  assert.throws(() => readCertificates(large), { code: 'REQUEST_TOO_LARGE' })
})

test('an upload made to be slow takes time in proportion to its bytes', () => {
  const lines = [
    '-----BEGIN A-----',
    begin,
    `${begin}${end}`,
    '-----BEGIN ',
    '-',
    '-----BEGIN',
    'A',
  ]
  // Quadratic time would be 50 times as long.
  const fairMs =
    20 * cpuMs(() => createHash('sha256').update(Buffer.alloc(certificateBytesMax)).digest())
  for (const line of lines) {
    for (const start of ['', `${begin}\n`]) {
      const upload = Buffer.from(start + `${line}\n`.repeat(150_000 / line.length))
      const tookMs = cpuMs(() => {
        try {
          readCertificates(upload)
        } catch {
          // Refused, as expected.
        }
      })
      assert.ok(tookMs < fairMs, `${start}${line}: ${tookMs} ms, and ${fairMs} ms are fair`)
    }
  }
})

function cpuMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return Math.max(user + system, 1) / 1_000
}
