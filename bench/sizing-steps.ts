/** The steps of the cases `sizing-costs-...`, and the costs that their differences are. */
import { estimateSize, type SizeLoad } from '../src/cli/size/estimate-size.ts'
import type { DiskCosts, ModeCosts, SizeCosts } from '../src/cli/size/size-costs.ts'
import type { Row } from './case-result.ts'

export interface SizingStep {
  readonly name: string
  readonly updatesPerSecond?: number
  readonly updateBytes?: number
  readonly moreBots?: number
  /** A server of its own. */
  readonly workers?: number
}

/** How a server fills its disk. */
export type DiskLoad = Pick<SizeLoad, 'updateBytes' | 'backlog'>

/** What a step does unless it says otherwise, and how its server begins. */
export const usual = { workers: 1, bots: 200, updatesPerSecond: 200, updateBytes: 300 } as const

const usualStep = `${usual.updatesPerSecond}/s`
const rates = [20, 200, 1_000, 3_000] as const
const largeBytes = 10_240
const moreWorkers = 4
const moreBots = 4_000
const smallDisk = { updateBytes: usual.updateBytes, backlog: 600_000 }
const largeDisk = { updateBytes: largeBytes, backlog: 15_000 }

export const sizingSteps: readonly SizingStep[] = [
  ...rates.map((updatesPerSecond) => ({ name: `${updatesPerSecond}/s`, updatesPerSecond })),
  { name: 'large', updateBytes: largeBytes },
  { name: 'more bots', moreBots },
  { name: 'more workers', workers: moreWorkers, updatesPerSecond: 1_000 },
]

export const diskSteps: readonly DiskLoad[] = [smallDisk, largeDisk]

/** The figure of a row. */
type FigureOf = (row: string, figure: string) => number

/** Returns the costs from the rows of the steps. */
export function sizeCostsOf(rows: readonly Row[]): SizeCosts {
  const of: FigureOf = (wanted, figure) => {
    const value = rows.find(({ name }) => name === wanted)?.figures[figure]
    if (value === undefined) throw new Error(`the report has no ${figure} of ${wanted}`)
    return value
  }
  // Of a bot without updates, only the polls cost. After many calls of setWebhook, a server works on for seconds.
  const botCores = (of('poll, more bots', 'cores') - of(`poll, ${usualStep}`, 'cores')) / moreBots
  // The same in both modes, and more than the noise of a measurement in one of them.
  const [ofPolls = 0, ofWebhooks = 0] = ['poll', 'webhook'].map(
    (mode) => of(`${mode}, large`, 'cores') - of(`${mode}, ${usualStep}`, 'cores'),
  )
  const byteCores =
    Math.max(ofPolls, ofWebhooks) / usual.updatesPerSecond / (largeBytes - usual.updateBytes)
  const shared = { botCores, byteCores }
  return {
    poll: modeCostsOf((step, figure) => of(`poll, ${step}`, figure), shared),
    webhook: modeCostsOf((step, figure) => of(`webhook, ${step}`, figure), shared),
    disk: diskCostsOf(of),
  }
}

function modeCostsOf(
  of: FigureOf,
  { botCores, byteCores }: Pick<ModeCosts, 'botCores' | 'byteCores'>,
): ModeCosts {
  const more = (figure: string, step: string, before: string): number =>
    Math.max(of(step, figure) - of(before, figure), 0)
  const { bots, updateBytes } = usual
  const botBytes = (more('PSS MB', 'more bots', 'large') * 1e6) / moreBots
  const workerBytes = (more('PSS MB', 'more workers', '1000/s') * 1e6) / (moreWorkers - 1)
  return {
    cores: rates.map((rate) => [
      rate,
      of(`${rate}/s`, 'cores') - bots * botCores - rate * updateBytes * byteCores,
    ]),
    botCores,
    byteCores,
    workerCores: more('cores', 'more workers', '1000/s') / (moreWorkers - 1),
    memoryBytes: of('large', 'PSS MB') * 1e6 - bots * botBytes - usual.workers * workerBytes,
    botBytes,
    workerBytes,
  }
}

/** Two sizes of updates say what depends on the size. */
function diskCostsOf(of: FigureOf): DiskCosts {
  const [small, large] = [smallDisk, largeDisk].map((load) => {
    const bytesIn = (state: string): number => of(`${diskName(load)}, ${state}`, 'disk MB') * 1e6
    const waiting = (bytesIn('waiting') - bytesIn('new')) / load.backlog
    const merging = bytesIn('merging') - load.backlog * waiting
    return { bytes: load.updateBytes, waiting, merging, kept: waiting / load.updateBytes }
  })
  if (small === undefined || large === undefined) throw new Error('expected two sizes')
  const byte = (large.waiting - small.waiting) / (large.bytes - small.bytes)
  const mergingBytes = (large.merging - small.merging) / (large.kept - small.kept)
  return {
    bytes: small.merging - mergingBytes * small.kept,
    mergingBytes,
    waiting: { update: small.waiting - byte * small.bytes, byte },
  }
}

export function diskName({ updateBytes, backlog }: DiskLoad): string {
  return `disk, ${backlog} pending of ${updateBytes} B`
}

/** What another load took, as a multiple of the estimate from these costs: its disk, or everything else. */
export function sizingRatios(row: Row, costs: SizeCosts): Readonly<Record<string, number>> {
  const of = (figure: string): number => row.figures[figure] ?? Number.NaN
  const { cores, memoryBytes, diskBytes } = estimateSize(
    {
      mode: row.name.startsWith('webhook') ? 'webhook' : 'poll',
      workers: of('workers'),
      bots: of('bots'),
      updatesPerSecond: of('rate'),
      backlog: of('backlog'),
      updateBytes: of('update B'),
    },
    costs,
  )
  if (row.name.startsWith('disk')) return { disk: (of('disk MB') * 1e6) / diskBytes }
  return { CPU: of('cores') / cores, memory: (of('PSS MB') * 1e6) / memoryBytes }
}
