import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface KeyPair {
  readonly key: string
  readonly cert: string
}

/** A self-signed certificate for `host`, made with the openssl command. */
export function makeCertificate(host: string, days = 2): KeyPair {
  const directory = mkdtempSync(join(tmpdir(), 'certificate-'))
  try {
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
    const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
    const names = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`]
    const files = ['-nodes', '-keyout', key, '-out', cert, '-days', String(days)]
    execFileSync('openssl', [...request, ...names, ...files], { stdio: 'ignore' })
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  } finally {
    rmSync(directory, { recursive: true })
  }
}
