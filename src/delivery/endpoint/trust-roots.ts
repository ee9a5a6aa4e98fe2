/**
 * The certificate authorities trusted for webhooks without an uploaded certificate: those of the system and those that
 * come with Node. Node alone would know neither an operator's own authority nor, in an old release, a newer public one.
 */
import { rootCertificates } from 'node:tls'

/** The files in which distributions keep all authorities. */
const bundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

export interface TrustRootSources {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Throws if there is no such file. */
  readonly readFile: (path: string) => string
}

/**
 * Returns the trust roots in PEM. SSL_CERT_FILE replaces the system's bundle and NODE_EXTRA_CA_CERTS adds to it, as with
 * OpenSSL and Node. A file that cannot be read adds nothing.
 */
export function trustRoots({ env, readFile }: TrustRootSources): readonly string[] {
  const read = (path: string | undefined): string => {
    try {
      return path === undefined || path === '' ? '' : readFile(path)
    } catch {
      return ''
    }
  }
  const named = env['SSL_CERT_FILE']
  const system = named === undefined || named === '' ? firstOf(bundles, read) : read(named)
  const texts = [...rootCertificates, system, read(env['NODE_EXTRA_CA_CERTS'])]
  const certificates = new Map<string, string>()
  for (const text of texts) {
    for (const [pem] of text.matchAll(
      /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
    )) {
      // Most certificates are in two of the lists, and each costs a parse.
      certificates.set(pem.replace(/\s+/g, ''), pem)
    }
  }
  return [...certificates.values()]
}

function firstOf(paths: readonly string[], read: (path: string) => string): string {
  for (const path of paths) {
    const text = read(path)
    if (text !== '') return text
  }
  return ''
}
