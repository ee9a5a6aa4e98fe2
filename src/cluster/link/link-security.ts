/**
 * How nodes prove to each other that they belong to the same cluster, as options of TLS. Both sides prove it, either with a
 * key that all nodes share, or with certificates of an authority that signs for this cluster only.
 *
 * The key is a pre-shared key of TLS 1.3 (RFC 8446 section 2.2): it needs no certificates and no dates, and the handshake of
 * a peer with another key fails. Everything here is plain data, which can be passed to workers.
 */
import { createPrivateKey, hkdfSync, X509Certificate } from 'node:crypto'
import type { ConnectionOptions, TlsOptions } from 'node:tls'
import { messageOf } from '../../message-of.ts'
import type { LinkSecurity } from '../node-links.ts'

/** The paths of the files that the security is made from. */
export type LinkSecurityFiles =
  | { readonly key: string }
  | { readonly cert: string; readonly certKey: string; readonly ca: string }

/** The protocol of links, as ALPN names it. A peer that does not name it is refused. */
export const linkProtocol = 'postbote-link/1'

/** TLS 1.3 binds a pre-shared key to a hash, and OpenSSL takes keys from programs only for ciphers with SHA-256. */
const keyCipher = 'TLS_AES_128_GCM_SHA256'
const keyIdentity = linkProtocol
const derivedKeyBytes = 32

/** The content of a cluster key file must have this many bytes. Chosen: 128 bits if they are random, and no word by accident. */
export const clusterKeyBytesMin = 16

/**
 * Reads the files.
 *
 * @param readFile - returns the content of a file
 * @throws Error with a message for the operator, which names the files and none of their content
 */
export function linkSecurityFrom(
  files: LinkSecurityFiles,
  readFile: (path: string) => Buffer,
): LinkSecurity {
  const read = (path: string): Buffer => {
    try {
      return readFile(path)
    } catch (error) {
      throw new Error(`${path} cannot be read: ${messageOf(error)}`, { cause: error })
    }
  }
  if ('key' in files) {
    const content = withoutLineEnd(read(files.key))
    if (content.length < clusterKeyBytesMin) {
      throw new Error(
        `the cluster key in ${files.key}: expected at least ${clusterKeyBytesMin} bytes, got ${content.length}; \`openssl rand -hex 32\` makes one`,
      )
    }
    return { kind: 'key', key: derivedKey(content) }
  }
  const pem = {
    cert: read(files.cert).toString(),
    key: read(files.certKey).toString(),
    ca: read(files.ca).toString(),
  }
  try {
    checkTogether(pem)
  } catch (error) {
    throw new Error(
      `${files.cert}, ${files.certKey} and ${files.ca}: expected a certificate, its key and the certificate of an authority, in PEM, got: ${messageOf(error)}`,
      { cause: error },
    )
  }
  return { kind: 'certificates', ...pem }
}

/** Returns the options of a TLS server that accepts only peers of the cluster. */
export function serverTlsOptions(security: LinkSecurity): TlsOptions {
  const common = { ...protocolOptions, ...secretsOf(security) }
  if (security.kind === 'certificates') {
    return { ...common, requestCert: true, rejectUnauthorized: true }
  }
  const key = Buffer.from(security.key)
  // Without a certificate, the server has no other way to complete a handshake than the key.
  return { ...common, pskCallback: (_socket, identity) => (identity === keyIdentity ? key : null) }
}

/** Returns the options of a TLS client that accepts only servers of the cluster. The address is not among them. */
export function clientTlsOptions(security: LinkSecurity): ConnectionOptions {
  const common = { ...protocolOptions, ...secretsOf(security), rejectUnauthorized: true }
  if (security.kind === 'certificates') {
    // The authority signs for this cluster only, so whoever has a certificate of it is a node. Names are not compared:
    // nodes reach each other at IP addresses, which change, and no node has more rights than another.
    return { ...common, checkServerIdentity: () => undefined }
  }
  const psk = Buffer.from(security.key)
  return {
    ...common,
    pskCallback: () => ({ psk, identity: keyIdentity }),
    // Called only if the server has a certificate in place of the key. No authority is trusted then, either.
    checkServerIdentity: () => new Error('expected a server with the cluster key'),
  }
}

const protocolOptions = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  ALPNProtocols: [linkProtocol],
} as const

/** `ca` is always a list: without a list, or with an empty text in its place, Node trusts the public authorities. */
function secretsOf(security: LinkSecurity) {
  if (security.kind === 'key') return { ciphers: keyCipher, ca: [] }
  const { cert, key, ca } = security
  return { cert, key, ca: [ca] }
}

/** Throws, without a part of the key, if the texts are not what they should be. */
function checkTogether({ cert, key, ca }: Record<'cert' | 'key' | 'ca', string>): void {
  const certificate = new X509Certificate(cert)
  // Only its form is checked: it may sign the certificate through intermediate ones.
  new X509Certificate(ca).toString()
  assertKeyOf(certificate, key)
}

/** Throws, without a part of the key, if a text in PEM is not the key of this certificate. */
export function assertKeyOf(certificate: X509Certificate, key: string): void {
  if (!certificate.checkPrivateKey(createPrivateKey(key))) {
    throw new Error('the key does not belong to the certificate')
  }
}

/** Any file works as a key: its content is only hashed. An editor may have added an end of line. */
function derivedKey(content: Buffer): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', content, '', linkProtocol, derivedKeyBytes))
}

function withoutLineEnd(content: Buffer): Buffer {
  let end = content.length
  while (end > 0 && (content[end - 1] === 0x0a || content[end - 1] === 0x0d)) end--
  return content.subarray(0, end)
}
