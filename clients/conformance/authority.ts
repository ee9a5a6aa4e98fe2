/** A certificate authority that the drivers trust, and a server's certificate of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueCertificate } from '../../test/support/network/certificates.ts'

const issuer = issueCertificate({ name: 'Conformance', isAuthority: true })
const folder = mkdtempSync(join(tmpdir(), 'conformance-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, 'authority.pem')
writeFileSync(file, issuer.cert)

/** The certificate of a server at 127.0.0.1. */
export const trusted = issueCertificate({
  name: 'server',
  alternatives: 'IP:127.0.0.1',
  issuer,
})

/** The variables with which Node.js, and OpenSSL and Go, trust the authority. */
export const trustingEnvironment = { NODE_EXTRA_CA_CERTS: file, SSL_CERT_FILE: file }
