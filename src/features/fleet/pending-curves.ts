/**
 * How many updates have waited for each bot in trouble, minute by minute over the last hour. The dashboard draws it beside the
 * bot, from before somebody looked.
 *
 * A curve begins when its bot gets into trouble, and ends an hour after. It is a ring of 60 numbers, of which the minute of the
 * last one is known, so a minute in which nobody counted has none.
 */
import type { QueueId } from '../../shard/records/record-keys.ts'

/** A curve has so many minutes. */
export const pendingCurveMinutes = 60
/** So many bots of a worker have a curve. Chosen: 1 MB, and more than an operator looks at. Others get one when these are well. */
export const pendingCurvesMax = 1_000
/** Stands for a minute without a number: no queue has as many updates. */
const unknown = 2 ** 32 - 1

interface Curve {
  readonly counts: Uint32Array
  /** Minutes since 1970. */
  lastMinute: number
  /** The last one in which the bot was in trouble. */
  troubledMinute: number
}

/** What is seen of a bot. */
export interface PendingSeen {
  readonly queue: QueueId
  readonly pendingCount: number
  readonly isTroubled: boolean
  /** Wall time in milliseconds. */
  readonly nowMs: number
}

/** The curves of a worker. */
export class PendingCurves {
  readonly #curves = new Map<QueueId, Curve>()

  /** The number of bots that have one. */
  get size(): number {
    return this.#curves.size
  }

  /** Notes what is seen of a bot, of which the last in a minute counts. */
  note({ queue, pendingCount, isTroubled, nowMs }: PendingSeen): void {
    const minute = minuteOf(nowMs)
    const curve = this.#curves.get(queue) ?? (isTroubled ? this.#begin(queue, minute) : undefined)
    if (curve === undefined) return
    if (isTroubled) curve.troubledMinute = minute
    if (minute - curve.troubledMinute >= pendingCurveMinutes) {
      this.#curves.delete(queue)
      return
    }
    skipTo(curve, minute)
    curve.counts[minute % pendingCurveMinutes] = pendingCount
  }

  /** Returns the last hour of a bot, the present minute last; undefined where nothing is known. */
  of(queue: QueueId, nowMs: number): readonly (number | undefined)[] {
    const curve = this.#curves.get(queue)
    const first = minuteOf(nowMs) - pendingCurveMinutes + 1
    return Array.from({ length: pendingCurveMinutes }, (_, nth) => {
      const minute = first + nth
      if (curve === undefined || minute > curve.lastMinute) return undefined
      if (minute <= curve.lastMinute - pendingCurveMinutes) return undefined
      const count = curve.counts[minute % pendingCurveMinutes]
      return count === unknown ? undefined : count
    })
  }

  /** The shard of some bots is with another worker. */
  forget(isForgotten: (queue: QueueId) => boolean): void {
    for (const queue of this.#curves.keys()) {
      if (isForgotten(queue)) this.#curves.delete(queue)
    }
  }

  #begin(queue: QueueId, minute: number): Curve | undefined {
    if (this.#curves.size >= pendingCurvesMax) this.#forgetRemoved(minute)
    if (this.#curves.size >= pendingCurvesMax) return undefined
    const counts = new Uint32Array(pendingCurveMinutes).fill(unknown)
    const curve = { counts, lastMinute: minute, troubledMinute: minute }
    this.#curves.set(queue, curve)
    return curve
  }

  /** Bots that were removed are not seen any more. */
  #forgetRemoved(minute: number): void {
    for (const [queue, { lastMinute }] of this.#curves) {
      if (minute - lastMinute >= pendingCurveMinutes) this.#curves.delete(queue)
    }
  }
}

/** The minutes between were not counted. A clock that was set back begins anew. */
function skipTo(curve: Curve, minute: number): void {
  const gap = minute - curve.lastMinute
  if (gap < 0 || gap >= pendingCurveMinutes) curve.counts.fill(unknown)
  else {
    for (let each = curve.lastMinute + 1; each < minute; each++) {
      curve.counts[each % pendingCurveMinutes] = unknown
    }
  }
  curve.lastMinute = minute
}

function minuteOf(ms: number): number {
  return Math.floor(ms / 60_000)
}
