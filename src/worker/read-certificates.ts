/**
 * Reads the certificates of the listeners with TLS, at a start and at a reload. Workers get them from the primary, as they get
 * the secrets of events (event-secrets.ts).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { namedMs } from '../kit/clock.ts'
import type { ListenerCertificate, ListenerCertificates, ListenerKind } from '../http/listener.ts'
import type { Config } from '../config/config.ts'
import { messageOf } from '../kit/errors.ts'
import { openToAllWarnings } from '../store/open-to-all.ts'

/** The options that name the files. */
type CertificateConfig = Pick<Config, 'httpCert' | 'httpCertKey' | 'adminCert' | 'adminCertKey'>

/** The files of a listener. */
export interface CertificateFiles {
  readonly listener: ListenerKind
  /** The option that names `cert`; the one of `key` ends in `-key`. */
  readonly option: string
  readonly cert: string
  readonly key: string
}

/** A certificate that cannot be used. The message is for the operator, and contains no part of the key. */
export class CertificateError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CertificateError'
  }
}

/** Returns the files that the options name, for the listeners with TLS. */
export function certificateFiles(config: CertificateConfig): readonly CertificateFiles[] {
  const { httpCert, httpCertKey, adminCert, adminCertKey } = config
  return [
    { listener: 'bot', option: '--http-cert', cert: httpCert, key: httpCertKey } as const,
    { listener: 'private', option: '--admin-cert', cert: adminCert, key: adminCertKey } as const,
  ].flatMap(({ cert, key, ...of }) =>
    cert === undefined || key === undefined ? [] : [{ ...of, cert, key }],
  )
}

/**
 * Reads the certificates of all listeners with TLS.
 *
 * @throws CertificateError if one cannot be used
 */
export function readCertificates(config: CertificateConfig): ListenerCertificates {
  return Object.fromEntries(
    certificateFiles(config).map((files) => [files.listener, readCertificate(files)]),
  )
}

/**
 * Reads the certificate of one listener, and checks that a server can use it.
 *
 * @throws CertificateError if not
 */
export function readCertificate(files: CertificateFiles): ListenerCertificate {
  const cert = textOf(files.cert, files.option)
  const key = textOf(files.key, `${files.option}-key`)
  try {
    assertKeyOf(new X509Certificate(cert), key)
    // OpenSSL also refuses what is too weak, and reads the certificates after the first.
    createSecureContext({ cert, key })
  } catch (error) {
    throw new CertificateError(
      `${files.option} ${files.cert} and ${files.option}-key ${files.key}: expected a certificate and its key without a password, in PEM, got: ${messageOf(error)}`,
      error,
    )
  }
  return { cert, key }
}

/**
 * Returns what an operator should know about files that can be used.
 *
 * @param certificates - what `readCertificates` has returned for these options
 */
export function certificateWarnings(
  config: CertificateConfig,
  certificates: ListenerCertificates,
  nowMs: number,
): readonly string[] {
  const warnings = certificateFiles(config).flatMap(({ listener, cert, key }) => {
    const read = certificates[listener]
    const problem = read && certificateProblem(read.cert, nowMs)
    return [
      ...openToAllWarnings(key),
      ...(problem === undefined ? [] : [`the certificate in ${cert} ${problem}`]),
    ]
  })
  // Both listeners may have the same files.
  return [...new Set(warnings)]
}

/** Returns why clients refuse this certificate at this time; undefined if nothing is wrong with its dates. */
export function certificateProblem(pem: string, nowMs: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(pem)
  if (namedMs(validTo) <= nowMs) return `expired on ${validTo}: renew it`
  return namedMs(validFrom) > nowMs ? `is not valid before ${validFrom}` : undefined
}

/** Returns when the first certificate of a PEM text, that of the server, expires, in milliseconds since 1970. */
export function certificateEndMs(pem: string): number {
  return namedMs(new X509Certificate(pem).validTo)
}

/** Throws, without a part of the key, if a text in PEM is not the key of this certificate. */
function assertKeyOf(certificate: X509Certificate, key: string): void {
  if (!certificate.checkPrivateKey(createPrivateKey(key))) {
    throw new Error('the key does not belong to the certificate')
  }
}

function textOf(file: string, option: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CertificateError(`${option} ${file} cannot be read: ${messageOf(error)}`, error)
  }
}
