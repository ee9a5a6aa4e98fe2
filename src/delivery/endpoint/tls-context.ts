/**
 * Limits what TLS to an endpoint may use and cost. The other side chooses the group, the certificates and the time of a
 * renegotiation, and all of that is computed on the event loop. So neither TLS 1.2 nor 1.3 offers finite-field
 * Diffie-Hellman (a group of 10,000 bits took 1 s per handshake), renegotiation is refused, and there may be only few
 * certificates, with keys of common kinds, and few messages after a handshake.
 *
 * RSA key exchange remains available for old servers. It costs a client one operation with the certificate's public key.
 */
import { constants } from 'node:crypto'
import {
  createSecureContext,
  DEFAULT_CIPHERS,
  type SecureContext,
  type SecureContextOptions,
} from 'node:tls'
import { limitCertificates } from '../../../native-bindings/certificate-limits.ts'
import { kib } from '../../kit/limits.ts'

/** OpenSSL's own list also contains ffdhe2048 to ffdhe8192, with which a handshake takes up to 0.3 s. */
const groups = 'X25519:P-256:P-384:P-521'

/**
 * The certificates of a handshake may have this many bytes. Reading them takes about 1 ms per KiB; a usual chain has 3 to
 * 6 KiB. OpenSSL's own bound is 100 KiB.
 */
const webhookCertificatesBytesMax = 24 * kib
/**
 * A handshake may have this many certificates; a usual chain has 2 to 4. Verifying one with a P-521 key, the most
 * expensive that is accepted, takes 3 to 6 ms.
 */
const webhookCertificatesMax = 8
/**
 * An RSA key may have this many bits: verifying a signature of this key with the longest exponent that is accepted takes
 * 2 ms. Authorities use 4,096 bits.
 */
const webhookCertificateRsaBitsMax = 8_192

/**
 * Creates the context for connections to endpoints.
 *
 * @param trust - the trust roots, as `ca` and `allowPartialTrustChain`; Node's own roots if it is empty
 */
export function tlsContext(trust: SecureContextOptions): SecureContext {
  limitTls()
  return createSecureContext({
    ...trust,
    ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
    ecdhCurve: groups,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  })
}

/**
 * Limits what others can make TLS compute in this process. This applies to the contexts that are created afterwards: those for
 * endpoints, and those of listeners with TLS.
 */
export function limitTls(): void {
  limitCertificates({
    bytesMax: webhookCertificatesBytesMax,
    countMax: webhookCertificatesMax,
    rsaBitsMax: webhookCertificateRsaBitsMax,
  })
}
