/** The typed door to the addon certificate_limits (certificate_limits.c says what its function does). */
import { loadAddon } from './load-addon.ts'

export interface CertificateLimits {
  /** All certificates of a handshake, as they are sent. */
  readonly bytesMax: number
  readonly countMax: number
  readonly rsaBitsMax: number
}

/** For the whole process, from the next secure context on; the first call decides. */
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
