/**
 * What TLS to an endpoint may use and cost. The other side chooses the group, the certificates and when to renegotiate,
 * and all of that is computed on the event loop. So there is no finite-field Diffie-Hellman (a group of 10,000 bits took
 * 1 s a handshake), in TLS 1.2 neither than in 1.3, no renegotiation, few certificates with keys of common kinds, and
 * few messages after a handshake.
 *
 * RSA key exchange stays in the list for old servers: it costs a client one operation with the certificate's public key.
 */

import { constants } from 'node:crypto'
import {
  createSecureContext,
  DEFAULT_CIPHERS,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'
import { limitCertificates } from '../../native-bindings/certificate-limits.ts'
import {
  webhookCertificateRsaBitsMax,
  webhookCertificatesBytesMax,
  webhookCertificatesMax,
} from '../limits.ts'

/** OpenSSL's own list has ffdhe2048 to ffdhe8192, too; with these a handshake takes up to 0.3 s. */
const groups = 'X25519:P-256:P-384:P-521'

/** @param trust whom to trust, as `ca` and `allowPartialTrustChain`; Node's own roots where it is empty. */
export function tlsContext(trust: SecureContextOptions): SecureContext {
  // It works for contexts that are made after it.
  limitCertificates({
    bytesMax: webhookCertificatesBytesMax,
    countMax: webhookCertificatesMax,
    rsaBitsMax: webhookCertificateRsaBitsMax,
  })
  return createSecureContext({
    ...trust,
    ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
    ecdhCurve: groups,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  })
}
