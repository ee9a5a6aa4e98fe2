/** Gauges of what fails later if nobody acts: keys and certificates that expire, and nodes that are gone. */
import { X509Certificate } from 'node:crypto'
import type { AccessKeyRing } from '../access/access-key-ring.ts'
import { type Clock, every, namedMs, type Timer } from '../clock.ts'
import type { LinkSecurity } from '../cluster/node-links.ts'
import type { GaugeName } from '../metrics.ts'

export interface EndingSoonOptions {
  readonly clock: Clock
  readonly gauges: { set(name: GaugeName, value: number): void }
  readonly ring: Pick<AccessKeyRing, 'countEnding'>
  /** Undefined on one machine. */
  readonly security: LinkSecurity | undefined
  /** Returns the number of nodes; 0 on one machine. */
  readonly nodes: () => number
}

/** Chosen: keys and certificates that people renew by hand are renewed in working time, and a holiday may be in between. */
export const endingSoonMs = 14 * 86_400_000
/** A node that is gone should be noticed within a minute, and this costs microseconds. */
export const endingSoonPeriodMs = 15_000

/** Every worker sets these gauges, because any of them may be gone; /metrics shows the highest value. */
export class EndingSoon {
  readonly #timer: Timer

  constructor({ clock, gauges, ring, security, nodes }: EndingSoonOptions) {
    const certificateEndsMs = security?.kind === 'certificates' ? endOf(security.cert) : Infinity
    this.#timer = every(clock, endingSoonPeriodMs, () => {
      const beforeMs = clock.nowMs() + endingSoonMs
      gauges.set('nodes', nodes())
      gauges.set('access_keys_ending', ring.countEnding(beforeMs))
      gauges.set('certificates_ending', certificateEndsMs < beforeMs ? 1 : 0)
    })
  }

  close(): void {
    this.#timer.cancel()
  }
}

/** Returns when the first certificate of a PEM text, that of the node, expires. */
function endOf(pem: string): number {
  return namedMs(new X509Certificate(pem).validTo)
}
