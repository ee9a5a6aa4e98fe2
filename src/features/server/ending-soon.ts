/** Gauges of what fails later if nobody acts: keys and certificates that expire, a disk that fills, and nodes that are gone. */
import type { AccessKeyRing } from '../../access/access-key-ring.ts'
import { type Clock, every, type Timer } from '../../kit/clock.ts'
import type { ListenerCertificates } from '../../http/listener.ts'
import type { Routes } from '../../process/routes.ts'
import { endingSoonMs, mib } from '../../kit/limits.ts'
import type { GaugeName } from '../../kit/metrics.ts'
import type { StoreSpace } from '../../store/store-engine.ts'
import { certificateEndMs } from '../../worker/read-certificates.ts'

export interface EndingSoonOptions {
  readonly clock: Clock
  readonly gauges: { set(name: GaugeName, value: number): void }
  readonly ring: Pick<AccessKeyRing, 'countEnding'>
  /** Those of the listeners with TLS. */
  readonly certificates: ListenerCertificates
  readonly routes: Pick<Routes, 'members' | 'lostNodes'>
  readonly space: Pick<StoreSpace, 'freeBytes'> | undefined
}

/** A node that is gone should be noticed within a minute, and this costs microseconds. */
export const endingSoonPeriodMs = 15_000

/** Every worker sets these gauges, because any of them may be gone; /metrics shows the highest value. */
export class EndingSoon {
  readonly #timer: Timer

  constructor({ clock, gauges, ring, certificates, routes, space }: EndingSoonOptions) {
    const { bot: botEndMs, private: privateEndMs } = endsOf(certificates)
    const endsMs = [botEndMs ?? Infinity, privateEndMs ?? Infinity]
    this.#timer = every(clock, endingSoonPeriodMs, () => {
      const beforeMs = clock.nowMs() + endingSoonMs
      gauges.set('nodes', routes.members().length)
      gauges.set('nodes_lost', routes.lostNodes)
      gauges.set('disk_free_mib', Math.floor((space?.freeBytes ?? 0) / mib))
      gauges.set('access_keys_ending', ring.countEnding(beforeMs))
      gauges.set('certificates_ending', endsMs.filter((endMs) => endMs < beforeMs).length)
      gauges.set('bot_certificate_left_seconds', secondsLeft(botEndMs, clock.nowMs()))
      gauges.set('private_certificate_left_seconds', secondsLeft(privateEndMs, clock.nowMs()))
    })
  }

  close(): void {
    this.#timer.cancel()
  }
}

function endsOf({ bot, private: own }: ListenerCertificates) {
  return {
    bot: bot && certificateEndMs(bot.cert),
    private: own && certificateEndMs(own.cert),
  }
}

/** 0 without a certificate, too, because a gauge is a number. It has 32 bits with a sign. */
function secondsLeft(endMs: number | undefined, nowMs: number): number {
  if (endMs === undefined) return 0
  return Math.min(Math.max(Math.floor((endMs - nowMs) / 1_000), 0), 2 ** 31 - 1)
}
