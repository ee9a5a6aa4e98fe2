/** Typed wrapper of the native addon `certificate_limits`. `certificate_limits.c` documents its function. */
import { loadAddon } from './load-addon.ts'

export interface CertificateLimits {
  /** Total size of the certificates in one handshake, as sent. */
  readonly bytesMax: number
  readonly countMax: number
  readonly rsaBitsMax: number
}

/**
 * Applies the limits to every TLS context that the process creates after the first call. Later calls have no effect.
 */
export function limitCertificates({ bytesMax, countMax, rsaBitsMax }: CertificateLimits): void {
  loaded().limitCertificates(bytesMax, countMax, rsaBitsMax)
}

interface Addon {
  limitCertificates(bytesMax: number, countMax: number, rsaBitsMax: number): void
}

let addon: Addon | undefined

function loaded(): Addon {
  return (addon ??= loadAddon<Addon>('certificate_limits'))
}
