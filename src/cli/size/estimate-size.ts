/**
 * What a server needs for a load, from the measured points of size-points.ts:
 *
 *   rate            a line from each point to the next one, through those that differ in nothing else; the first line goes on
 *                   below the points, and the last one above them
 *   bots, backlog   for each, one point has more of it, and what that point took more is added in proportion
 *   workers         the same, but more workers add CPU time in proportion to that of the load, because they forward to each
 *                   other. A single worker forwards nothing, and the case `growth` of the bench has its share
 *
 * `npm run bench -- sizing-check` compares this with other loads.
 */
import { oneWorkerShare, sizePoints, type SizePoint } from './size-points.ts'

export interface SizeLoad {
  readonly mode: 'poll' | 'webhook'
  readonly bots: number
  /** Of all bots together. */
  readonly updatesPerSecond: number
  /** Updates that wait. */
  readonly backlog: number
}

export interface SizeEstimate {
  /** CPU time in a second, in seconds. */
  readonly cores: number
  readonly workers: number
  readonly memoryBytes: number
  readonly diskBytes: number
}

type Amount = 'cores' | 'memoryMb' | 'diskMb'
type Extra = 'bots' | 'backlog' | 'workers'

/** A worker that is busier than this answers late when load comes in bursts. */
const workerBusyMax = 0.6
const megabyte = 1e6

/**
 * Estimates what a server needs.
 *
 * @param points - the measured ones; those of another table for tests
 */
export function estimateSize(load: SizeLoad, points = sizePoints): SizeEstimate {
  const usual = usualWorkers(points)
  const usualCores = amountOf('cores', { ...load, workers: usual }, points)
  const workers = Math.max(1, Math.ceil(usualCores / workerBusyMax))
  const of = (amount: Amount): number => amountOf(amount, { ...load, workers }, points)
  return {
    cores: of('cores'),
    workers,
    memoryBytes: of('memoryMb') * megabyte,
    diskBytes: of('diskMb') * megabyte,
  }
}

/** The highest rate that was measured. */
export function measuredRateMax({ mode }: Pick<SizeLoad, 'mode'>, points = sizePoints): number {
  return Math.max(...lineOf(mode, points).map(({ updatesPerSecond }) => updatesPerSecond))
}

function amountOf(
  amount: Amount,
  load: SizeLoad & { readonly workers: number },
  points: readonly SizePoint[],
): number {
  const line = lineOf(load.mode, points)
  const own = onLine(line, amount, load)
  const added = (extra: Extra): number => {
    const more = load[extra] - (line[0]?.[extra] ?? 0)
    const { slope, less } = slopeOf(extra, { amount, mode: load.mode }, points)
    if (extra !== 'workers' || amount !== 'cores') return more * slope
    if (more < 0) return own * (oneWorkerShare - 1)
    return less > 0 ? more * (slope / less) * own : 0
  }
  return Math.max(own + added('bots') + added('backlog') + added('workers'), 0)
}

/** The points that differ in nothing but their rate: those like the first one of the mode. */
function lineOf(mode: SizePoint['mode'], points: readonly SizePoint[]): readonly SizePoint[] {
  const own = points.filter((point) => point.mode === mode)
  const [first] = own
  return own
    .filter(
      ({ bots, backlog, workers }) =>
        bots === first?.bots && backlog === first.backlog && workers === first.workers,
    )
    .toSorted((a, b) => a.updatesPerSecond - b.updatesPerSecond)
}

function usualWorkers(points: readonly SizePoint[]): number {
  return points[0]?.workers ?? 1
}

function onLine(
  line: readonly SizePoint[],
  amount: Amount,
  { updatesPerSecond: rate }: SizeLoad,
): number {
  const nextAt = line.findIndex((point) => point.updatesPerSecond >= rate)
  const at = Math.max(nextAt < 0 ? line.length - 1 : nextAt, 1)
  const [from, to] = [line[at - 1], line[at]]
  if (from === undefined || to === undefined) throw new Error('expected two points of each mode')
  const slope = (to[amount] - from[amount]) / (to.updatesPerSecond - from.updatesPerSecond)
  return Math.max(from[amount] + (rate - from.updatesPerSecond) * slope, 0)
}

/**
 * Finds the point that has more of something than the first one of its mode, and returns what one more takes (`slope`) and what
 * the same rate takes without it (`less`). A mode without such a point uses that of the other mode.
 */
function slopeOf(
  extra: Extra,
  { amount, mode }: { readonly amount: Amount; readonly mode: SizePoint['mode'] },
  points: readonly SizePoint[],
): { readonly slope: number; readonly less: number } {
  const candidates = points.toSorted((a, b) => Number(b.mode === mode) - Number(a.mode === mode))
  for (const point of candidates) {
    const line = lineOf(point.mode, points)
    const [first] = line
    if (first === undefined || point[extra] === first[extra]) continue
    const less = onLine(line, amount, point)
    const slope = Math.max((point[amount] - less) / (point[extra] - first[extra]), 0)
    return { slope, less }
  }
  return { slope: 0, less: 0 }
}
