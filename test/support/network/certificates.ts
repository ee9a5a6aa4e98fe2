/** Real certificates, made with the openssl command: self-signed ones, and authorities that sign others. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface KeyPair {
  readonly key: string
  readonly cert: string
}

export interface CertificateWishes {
  /** The common name. */
  readonly name: string
  /** The subjectAltName, for example `DNS:bot.example,IP:127.0.0.1`; false for none. Default: the name. */
  readonly alternatives?: string | false
  /** In the form `YYYYMMDDHHMMSSZ`. Default: from yesterday to tomorrow. */
  readonly from?: string
  readonly until?: string
  readonly isAuthority?: boolean
  /** Default: a key of P-256. */
  readonly rsaBits?: number
  /** Default: the certificate itself. */
  readonly issuer?: KeyPair
}

/** Returns a self-signed certificate for `host`. */
export function makeCertificate(host: string): KeyPair {
  return issueCertificate({ name: host })
}

export function issueCertificate(wishes: CertificateWishes): KeyPair {
  const { name, alternatives = `DNS:${name}`, isAuthority = false, issuer, rsaBits } = wishes
  const directory = mkdtempSync(join(tmpdir(), 'certificate-'))
  const file = (base: string): string => join(directory, base)
  const write = (base: string, text: string): string => {
    writeFileSync(file(base), text)
    return file(base)
  }
  try {
    const kind =
      rsaBits === undefined
        ? ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
        : [`rsa:${rsaBits}`]
    openssl(
      'req',
      '-new',
      '-nodes',
      '-newkey',
      ...kind,
      '-subj',
      `/CN=${name}`,
      '-keyout',
      file('key.pem'),
      '-out',
      file('csr.pem'),
    )
    const signer =
      issuer === undefined
        ? ['-selfsign', '-keyfile', file('key.pem')]
        : ['-cert', write('issuer.pem', issuer.cert), '-keyfile', write('issuer.key', issuer.key)]
    write('index.txt', '')
    // `openssl ca` accepts both dates, unlike `openssl req -x509` in many versions.
    const config = [
      `[ca]`,
      `default_ca=it`,
      `[it]`,
      `database=${file('index.txt')}`,
      `new_certs_dir=${directory}`,
      `rand_serial=yes`,
      `default_md=sha256`,
      `policy=any`,
      `x509_extensions=extensions`,
      `[any]`,
      `commonName=supplied`,
      `[extensions]`,
      `basicConstraints=critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}`,
      // Python refuses an authority without these since 3.13.
      'subjectKeyIdentifier=hash',
      ...(isAuthority ? ['keyUsage=critical,keyCertSign,cRLSign'] : []),
      ...(issuer === undefined ? [] : ['authorityKeyIdentifier=keyid']),
      ...(alternatives === false || isAuthority ? [] : [`subjectAltName=${alternatives}`]),
    ].join('\n')
    const { from = dateIn(-1), until = dateIn(1) } = wishes
    const dates = ['-startdate', from, '-enddate', until]
    const files = ['-in', file('csr.pem'), '-out', file('cert.pem')]
    openssl(
      'ca',
      '-batch',
      '-notext',
      '-config',
      write('ca.cnf', config),
      ...signer,
      ...dates,
      ...files,
    )
    return {
      key: readFileSync(file('key.pem'), 'utf8'),
      cert: readFileSync(file('cert.pem'), 'utf8'),
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Returns a date a number of days after now, or before now if negative, in the format of openssl. */
export function dateIn(days: number): string {
  const date = new Date(Date.now() + days * 86_400_000)
  return `${date.toISOString().replace(/\D/g, '').slice(0, 14)}Z`
}
