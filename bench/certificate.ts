/** A self-signed certificate for the loopback address; programs that should trust it get its file. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificate {
  readonly key: string
  readonly cert: string
  /** The file of `cert`, for NODE_EXTRA_CA_CERTS. */
  readonly file: string
  /** The file of `key`. */
  readonly keyFile: string
}

/** Needs the openssl command. The key has the type that most sites use now. */
export function makeCertificate(directory: string): Certificate {
  const keyFile = join(directory, 'sink-key.pem')
  const file = join(directory, 'sink-cert.pem')
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const names = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const files = ['-nodes', '-keyout', keyFile, '-out', file, '-days', '2']
  execFileSync('openssl', [...request, ...names, ...files], { stdio: 'ignore' })
  return { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(file, 'utf8'), file, keyFile }
}
