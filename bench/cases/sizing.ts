/**
 * What a server needs for a load: the points from which the table of `postbote size` is made (`sizing`), and other loads,
 * for which its estimate is compared with a measurement (`sizing-check`).
 */
import { estimateSize } from '../../src/cli/size/estimate-size.ts'
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { measureSizing, type SizingLoad } from '../sizing-load.ts'

/** Long enough to include compactions of a busy server. */
const pace = { warmUpMs: 0, durationMs: 5_000 }
/** The largest allowed error of an estimate, as a part of it. */
const errorMax = 0.25

const rates = [200, 1_000, 3_000]
const usualBots = 200
/** Beside the rates: what more bots, a backlog and more workers add. */
const points: readonly SizingLoad[] = [
  ...(['poll', 'webhook'] as const).flatMap((mode) =>
    rates.map((updatesPerSecond) => ({ mode, bots: usualBots, updatesPerSecond, backlog: 0 })),
  ),
  { mode: 'poll', bots: 2_000, updatesPerSecond: 200, backlog: 0 },
  { mode: 'webhook', bots: 2_000, updatesPerSecond: 200, backlog: 0 },
  { mode: 'poll', bots: usualBots, updatesPerSecond: 200, backlog: 200_000 },
  { mode: 'poll', bots: usualBots, updatesPerSecond: 1_000, backlog: 0, workers: 4 },
]

/** None of them is a point of the table. */
const checked: readonly SizingLoad[] = [
  { mode: 'poll', bots: 1_200, updatesPerSecond: 600, backlog: 100_000 },
  { mode: 'webhook', bots: 500, updatesPerSecond: 2_000, backlog: 0 },
  { mode: 'poll', bots: 300, updatesPerSecond: 1_500, backlog: 150_000 },
]

export const sizingCases: readonly BenchCase[] = [
  {
    name: 'sizing',
    title: 'what a server needs: the points of `postbote size`, updates of 300 B',
    operation: 'update',
    targets: [],
    isExtra: true,
    freshRoundsMax: 1,
    pace,
    async open(context) {
      return points.map((load) => ({
        name: nameOf(load),
        run: (durationMs) => measureSizing(context, load, durationMs),
      }))
    },
  },
  {
    name: 'sizing-check',
    title: 'what a server needs: measured, as a multiple of what `postbote size` says',
    operation: 'update',
    targets: ['CPU error', 'memory error', 'disk error'].flatMap((figure) =>
      checked.map((load) => ({
        kind: 'figure' as const,
        figure,
        of: nameOf(load),
        max: errorMax,
      })),
    ),
    isExtra: true,
    freshRoundsMax: 1,
    pace,
    async open(context) {
      return checked.map((load) => checkedContestant(context, load))
    },
  },
]

function checkedContestant(context: CaseContext, load: SizingLoad): Contestant {
  return {
    name: nameOf(load),
    async run(durationMs) {
      const estimate = estimateSize(load)
      const { workers } = estimate
      const sample = await measureSizing(context, { ...load, workers }, durationMs)
      const { cores, 'PSS MB': memory, 'disk MB': disk } = sample.figures
      const ratios = {
        CPU: cores / estimate.cores,
        memory: (memory * 1e6) / estimate.memoryBytes,
        disk: (disk * 1e6) / estimate.diskBytes,
      }
      const entries = Object.entries(ratios)
      const figures = {
        ...sample.figures,
        ...Object.fromEntries(entries.map(([name, ratio]) => [`${name} ratio`, ratio])),
        ...Object.fromEntries(
          entries.map(([name, ratio]) => [`${name} error`, Math.abs(ratio - 1)]),
        ),
      }
      return { ...sample, figures }
    },
  }
}

function nameOf({ mode, bots, updatesPerSecond, backlog, workers }: SizingLoad): string {
  const pending = backlog === 0 ? '' : `, ${backlog} pending`
  const many = workers === undefined ? '' : `, ${workers} workers`
  return `${mode}, ${bots} bots, ${updatesPerSecond}/s${pending}${many}`
}
