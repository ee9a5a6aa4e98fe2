/**
 * The steps of `sizing-costs`, and the costs that their differences are. Each step keeps what earlier ones have added to the server,
 * except for the last one.
 */
import { estimateSize, type SizeLoad } from '../src/cli/size/estimate-size.ts'
import type { ByUpdate, ModeCosts, SizeCosts } from '../src/cli/size/size-costs.ts'
import type { Row } from './case-result.ts'

export interface SizingStep {
  readonly name: string
  readonly updatesPerSecond?: number
  readonly updateBytes?: number
  readonly moreBots?: number
  readonly moreBacklog?: number
  /** A server of its own. */
  readonly workers?: number
}

/** What a step does unless it says otherwise, and how its server begins. */
export const usual = { workers: 1, bots: 200, updatesPerSecond: 200, updateBytes: 300 } as const

const rates = [20, 200, 1_000, 3_000] as const
const largeBytes = 10_240
const moreWorkers = 4
const moreBots = 4_000
const moreBacklog = 400_000
const moreLargeBacklog = 15_000

export const sizingSteps: readonly SizingStep[] = [
  ...rates.map((updatesPerSecond) => ({ name: `${updatesPerSecond}/s`, updatesPerSecond })),
  { name: 'large', updateBytes: largeBytes },
  { name: 'more bots', moreBots },
  { name: 'backlog', moreBacklog },
  { name: 'large backlog', moreBacklog: moreLargeBacklog, updateBytes: largeBytes },
  { name: 'more workers', workers: moreWorkers, updatesPerSecond: 1_000 },
]

/** Returns the costs from the rows of the steps. */
export function sizeCostsOf(rows: readonly Row[]): SizeCosts {
  return { poll: modeCostsOf('poll', rows), webhook: modeCostsOf('webhook', rows) }
}

function modeCostsOf(mode: SizeLoad['mode'], rows: readonly Row[]): ModeCosts {
  const of = (step: string, figure: string): number => {
    const row = rows.find(({ name }) => name === `${mode}, ${step}`)
    const value = row?.figures[figure]
    if (value === undefined) throw new Error(`the report has no ${figure} of ${mode}, ${step}`)
    return value
  }
  const more = (figure: string, step: string, before: string): number =>
    Math.max(of(step, figure) - of(before, figure), 0)
  const { bots, updatesPerSecond, updateBytes } = usual
  const usualStep = `${updatesPerSecond}/s`
  const botCores = more('cores', 'more bots', usualStep) / moreBots
  const byteCores =
    more('cores', 'large', usualStep) / updatesPerSecond / (largeBytes - updateBytes)
  const botBytes = (more('PSS MB', 'more bots', 'large') * 1e6) / moreBots
  const workerBytes = (more('PSS MB', 'more workers', '1000/s') * 1e6) / (moreWorkers - 1)
  const waiting = (figure: string): ByUpdate => {
    const small = (more(figure, 'backlog', 'more bots') * 1e6) / moreBacklog
    const large = (more(figure, 'large backlog', 'backlog') * 1e6) / moreLargeBacklog
    const byte = (large - small) / (largeBytes - updateBytes)
    return { update: small - updateBytes * byte, byte }
  }
  return {
    cores: rates.map((rate) => [
      rate,
      of(`${rate}/s`, 'cores') - bots * botCores - rate * updateBytes * byteCores,
    ]),
    botCores,
    byteCores,
    forwarding: (of('more workers', 'cores') / of('1000/s', 'cores') - 1) / (1 - 1 / moreWorkers),
    memoryBytes: of('large', 'PSS MB') * 1e6 - bots * botBytes - usual.workers * workerBytes,
    botBytes,
    workerBytes,
    diskBytes: of('3000/s', 'disk MB') * 1e6,
    waitingMemory: waiting('PSS MB'),
    waitingDisk: waiting('disk MB'),
  }
}

/** What other loads took, as a multiple of the estimate from these costs. */
export function sizingRatios(
  row: Row,
  costs: SizeCosts,
): Readonly<Record<'CPU' | 'memory' | 'disk', number>> {
  const of = (figure: string): number => row.figures[figure] ?? Number.NaN
  const load = {
    mode: row.name.startsWith('poll') ? ('poll' as const) : ('webhook' as const),
    workers: of('workers'),
    bots: of('bots'),
    updatesPerSecond: of('rate'),
    backlog: of('backlog'),
    updateBytes: of('update B'),
  }
  const estimate = estimateSize(load, costs)
  return {
    CPU: of('cores') / estimate.cores,
    memory: (of('PSS MB') * 1e6) / estimate.memoryBytes,
    disk: (of('disk MB') * 1e6) / estimate.diskBytes,
  }
}
