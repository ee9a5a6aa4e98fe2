/**
 * Plans what a seed does to the server and when. The plan is drawn in advance, so that a replay can leave out single
 * kinds.
 */
import type { Luck } from './luck.ts'

export const nemesisKinds = [
  'weather',
  'gone for long',
  'jump',
  'set',
  'delete',
  'pause',
  'limit',
  'restart',
  'crash',
  'reads',
  'poison',
  'names',
] as const

export type NemesisKind = (typeof nemesisKinds)[number]

export interface Plan {
  /** From this time on the weather is fair and nothing more strikes. */
  readonly calmMs: number
  readonly keys: number
  readonly bursts: readonly { readonly atMs: number; readonly count: number }[]
  readonly strokes: readonly { readonly atMs: number; readonly kind: NemesisKind }[]
  readonly goneTimeoutMs: number
  readonly shortLived: number
  readonly windowUpdatesMax: number | undefined
  readonly windowBytesMax: number | undefined
  readonly connectionsMax: number
  /** Above this, only the first update of a key is loaded. */
  readonly loadedBytesMax: number | undefined
  /** Undefined: no sweep. */
  readonly sweepMs: number | undefined
}

const hourMs = 3_600_000

export function drawPlan(luck: Luck): Plan {
  // A few seeds last longer than the 23 hours after which a gone endpoint is given up.
  const isLong = luck.chance(0.02)
  const calmMs = isLong ? luck.int(25, 40) * hourMs : luck.pick([3_000, 30_000, 200_000, 1_200_000])
  const kinds = nemesisKinds.filter((kind) => kind !== 'gone for long' && luck.chance(0.5))
  const strokes: { atMs: number; kind: NemesisKind }[] = []
  if (isLong) strokes.push({ atMs: 0, kind: 'gone for long' })
  const count = isLong || kinds.length === 0 ? luck.int(0, 2) : luck.int(0, 16)
  for (let index = 0; index < count && kinds.length > 0; index++) {
    strokes.push({ atMs: luck.int(0, calmMs), kind: luck.pick(kinds) })
  }
  const burstMax = luck.pick([1, 5, 30])
  return {
    calmMs,
    keys: isLong ? 2 : luck.int(1, 10),
    bursts: Array.from({ length: luck.int(1, 12) }, () => ({
      atMs: isLong ? luck.int(0, hourMs) : luck.int(0, calmMs),
      count: luck.int(1, burstMax),
    })),
    strokes,
    goneTimeoutMs: isLong ? 23 * hourMs : luck.int(1, luck.pick([5, 60, 1_200])) * 1_000,
    shortLived: luck.pick([0, 0.2, 0.9]),
    windowUpdatesMax: luck.pick([undefined, 1, luck.int(2, 30)]),
    windowBytesMax: luck.pick([undefined, 1, luck.int(1, 10_000)]),
    sweepMs: luck.pick([undefined, isLong ? hourMs : luck.int(1, 60) * 1_000]),
    connectionsMax: luck.pick([Number.POSITIVE_INFINITY, luck.int(1, 10)]),
    loadedBytesMax: luck.pick([undefined, luck.int(1, 10_000)]),
  }
}
