/**
 * How nodes prove to each other that they belong to the same cluster, as options of TLS. Both sides prove it with a key that
 * all nodes share.
 *
 * It is a pre-shared key of TLS 1.3 (RFC 8446 section 2.2): it needs no certificates and no dates, and the handshake of a
 * peer with another key fails. Everything here is plain data, which can be passed to workers.
 */
import { hkdfSync } from 'node:crypto'
import type { ConnectionOptions, SecureContextOptions, TlsOptions } from 'node:tls'
import { messageOf } from '../../kit/errors.ts'
import type { LinkSecurity } from '../../process/node-links.ts'

/** The protocol of links, as ALPN names it. A peer that does not name it is refused. */
export const linkProtocol = 'postbote-link/1'

/** TLS 1.3 binds a pre-shared key to a hash, and OpenSSL takes keys from programs only for ciphers with SHA-256. */
const keyCipher = 'TLS_AES_128_GCM_SHA256'
const keyIdentity = linkProtocol
const derivedKeyBytes = 32

/** The content of a cluster key file must have this many bytes. Chosen: 128 bits if they are random, and no word by accident. */
export const clusterKeyBytesMin = 16

/**
 * Reads the cluster key.
 *
 * @param readFile - returns the content of a file
 * @throws Error with a message for the operator, which names the file and none of its content
 */
export function linkSecurityFrom(path: string, readFile: (path: string) => Buffer): LinkSecurity {
  const content = withoutLineEnd(contentOf(path, readFile))
  if (content.length < clusterKeyBytesMin) {
    throw new Error(
      `the cluster key in ${path}: expected at least ${clusterKeyBytesMin} bytes, got ${content.length}; \`openssl rand -hex 32\` makes one`,
    )
  }
  return { key: derivedKey(content) }
}

/** Returns the options of a TLS server that accepts only peers of the cluster. */
export function serverTlsOptions(security: LinkSecurity): TlsOptions {
  const key = Buffer.from(security.key)
  // Without a certificate, the server has no other way to complete a handshake than the key.
  return {
    ...commonOptions,
    pskCallback: (_socket, identity) => (identity === keyIdentity ? key : null),
  }
}

/** Returns the options of a TLS client that accepts only servers of the cluster. The address is not among them. */
export function clientTlsOptions(security: LinkSecurity): ConnectionOptions {
  const psk = Buffer.from(security.key)
  return {
    ...commonOptions,
    rejectUnauthorized: true,
    pskCallback: () => ({ psk, identity: keyIdentity }),
    // Called only if the server has a certificate in place of the key. No authority is trusted then, either.
    checkServerIdentity: () => new Error('expected a server with the cluster key'),
  }
}

const commonOptions: SecureContextOptions & { ALPNProtocols: string[] } = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  ALPNProtocols: [linkProtocol],
  ciphers: keyCipher,
  // Without a list, Node trusts the public authorities.
  ca: [],
}

function contentOf(path: string, readFile: (path: string) => Buffer): Buffer {
  try {
    return readFile(path)
  } catch (error) {
    throw new Error(`${path} cannot be read: ${messageOf(error)}`, { cause: error })
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
