/**
 * What a server needs for a load, as sums of what its parts cost (size-costs.ts). Only the CPU time of updates is no product: the more
 * there are, the more of them share a sync, so it follows the measured rates. The cases `sizing-check-...` of the bench measure other
 * loads.
 */
import { sizeCosts } from './size-costs.ts'

export interface SizeLoad {
  readonly mode: 'poll' | 'webhook'
  readonly bots: number
  /** Of all bots together. */
  readonly updatesPerSecond: number
  /** Updates that wait. */
  readonly backlog: number
  /** Of each update. */
  readonly updateBytes: number
  /** As many as the load needs, unless there is a number. */
  readonly workers?: number
}

export interface SizeEstimate {
  /** CPU time in a second, in seconds. */
  readonly cores: number
  readonly workers: number
  readonly memoryBytes: number
  readonly diskBytes: number
}

/** A worker that is busier than this answers late when load comes in bursts. */
const workerBusyMax = 0.6

/**
 * Estimates what a server needs.
 *
 * @param costs - the measured ones; others for tests
 */
export function estimateSize(load: SizeLoad, costs = sizeCosts): SizeEstimate {
  const { mode, bots, updatesPerSecond: rate, backlog, updateBytes } = load
  const own = costs[mode]
  const alone = onLine(own.cores, rate) + bots * own.botCores + rate * updateBytes * own.byteCores
  const coresOf = (workers: number): number => alone + (workers - 1) * own.workerCores
  const needed =
    alone <= workerBusyMax
      ? 1
      : Math.ceil((alone - own.workerCores) / (workerBusyMax - own.workerCores))
  const { workers = needed } = load
  const { disk } = costs
  const waitingBytes = disk.waiting.update + updateBytes * disk.waiting.byte
  return {
    cores: coresOf(workers),
    workers,
    // Updates that wait take none that is worth a sum: they are read from disk when they are needed.
    memoryBytes: own.memoryBytes + workers * own.workerBytes + bots * own.botBytes,
    diskBytes:
      disk.bytes + disk.mergingBytes * (waitingBytes / updateBytes) + backlog * waitingBytes,
  }
}

/** The highest rate that was measured. */
export function measuredRateMax({ mode }: Pick<SizeLoad, 'mode'>, costs = sizeCosts): number {
  return costs[mode].cores.at(-1)?.[0] ?? 0
}

/** Between two points, on the line through them; beyond them, on the nearest line. */
function onLine(points: readonly (readonly [number, number])[], x: number): number {
  const found = points.findIndex(([each]) => each >= x)
  const at = found < 0 ? points.length - 1 : Math.max(found, 1)
  const [[x0, y0] = [0, 0], [x1, y1] = [1, 0]] = points.slice(at - 1, at + 1)
  return Math.max(y0 + ((x - x0) * (y1 - y0)) / (x1 - x0), 0)
}
