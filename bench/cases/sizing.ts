/**
 * What a server needs for a load: the loads from which the costs of `postbote size` come (`sizing-costs-...`), and others, for which
 * `npm run bench -- --page REPORT` compares the measurement with the estimate from these costs (`sizing-check-...`).
 */
import type { SizeLoad } from '../../src/cli/size/estimate-size.ts'
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { type DiskLoad, diskName, diskSteps, sizingSteps, usual } from '../sizing-steps.ts'
import { SizingServer } from '../sizing-load.ts'

const pace = { warmUpMs: 0, durationMs: 3_000 }
const modes = ['poll', 'webhook'] as const

type CheckedLoad = Omit<SizeLoad, 'mode'> & { readonly workers: number }

/**
 * Loads of all shapes, none of which is one of the steps. Those of one list are on one server, so they only grow. The backlog of the
 * second one stays as it was pushed.
 */
const checked: readonly (readonly CheckedLoad[])[] = [
  [
    { bots: 20, updatesPerSecond: 2_500, backlog: 0, updateBytes: 300, workers: 2 },
    { bots: 500, updatesPerSecond: 1_500, backlog: 150_000, updateBytes: 300, workers: 2 },
  ],
  [
    { bots: 1_000, updatesPerSecond: 800, backlog: 100_000, updateBytes: 1_024, workers: 1 },
    { bots: 6_000, updatesPerSecond: 50, backlog: 100_000, updateBytes: 1_024, workers: 1 },
    { bots: 6_000, updatesPerSecond: 150, backlog: 100_000, updateBytes: 10_240, workers: 1 },
  ],
]
/** The disk does not depend on how bots get their updates. */
const checkedDisks: readonly DiskLoad[] = [
  { updateBytes: 300, backlog: 100_000 },
  { updateBytes: 4_096, backlog: 20_000 },
]

export const sizingCases: readonly BenchCase[] = [
  ...modes.map((mode) =>
    sizingCase(`sizing-costs-${mode}`, `the steps of one life, ${mode}`, (context) =>
      lifeOf(context, mode),
    ),
  ),
  sizingCase('sizing-costs-disk', 'the disk, with and without updates that wait', (context) =>
    diskSteps.flatMap((load) => diskLife(context, load)),
  ),
  ...modes.map((mode) =>
    sizingCase(`sizing-check-${mode}`, `other loads, ${mode}`, (context) =>
      checked.flatMap((loads) => checkedLife(context, mode, loads)),
    ),
  ),
  sizingCase('sizing-check-disk', 'the disk with other loads', (context) =>
    checkedDisks.flatMap((load) => diskLife(context, load).slice(-1)),
  ),
]

function sizingCase(
  name: string,
  what: string,
  open: (context: CaseContext) => readonly Contestant[],
): BenchCase {
  return {
    name,
    title: `what a server needs: ${what}`,
    operation: 'update',
    targets: [],
    isExtra: true,
    freshRoundsMax: 1,
    pace,
    async open(context) {
      return open(context)
    },
  }
}

/** The steps of a mode, in their order, with one server; then one with more workers. */
function lifeOf(context: CaseContext, mode: SizeLoad['mode']): readonly Contestant[] {
  let server: SizingServer | undefined
  return sizingSteps.map((step) => ({
    name: `${mode}, ${step.name}`,
    async run(durationMs) {
      const { workers = usual.workers, moreBots = 0 } = step
      if (workers !== server?.workers) {
        await server?.close()
        server = await SizingServer.start(context, { mode, workers, bots: usual.bots })
        await server.warmUp()
      }
      await server.addBots(moreBots)
      const { updatesPerSecond = usual.updatesPerSecond, updateBytes = usual.updateBytes } = step
      return server.measure({ updatesPerSecond, updateBytes, durationMs })
    },
  }))
}

function checkedLife(
  context: CaseContext,
  mode: SizeLoad['mode'],
  loads: readonly CheckedLoad[],
): readonly Contestant[] {
  let server: SizingServer | undefined
  return loads.map((load) => {
    const { workers, bots, updatesPerSecond, backlog, updateBytes } = load
    const pending = backlog === 0 ? '' : `, ${backlog} pending`
    return {
      name: `${mode}, ${bots} bots, ${updatesPerSecond}/s of ${updateBytes} B${pending}`,
      async run(durationMs) {
        if (server === undefined) {
          server = await SizingServer.start(context, { mode, workers, bots })
          await server.warmUp()
        }
        await server.addBots(bots - server.bots)
        await server.hoard(backlog - server.backlog, updateBytes)
        const sample = await server.measure({ updatesPerSecond, updateBytes, durationMs })
        if (load === loads.at(-1)) await server.close()
        return sample
      },
    }
  })
}

/** A server of its own that is new, has updates that wait, and merges its tables. */
function diskLife(context: CaseContext, { updateBytes, backlog }: DiskLoad): readonly Contestant[] {
  let starting: Promise<SizingServer> | undefined
  const started = (): Promise<SizingServer> =>
    (starting ??= SizingServer.start(context, { mode: 'poll', workers: 2, bots: 20 }))
  const name = diskName({ updateBytes, backlog })
  return [
    {
      name: `${name}, new`,
      run: async (durationMs) => (await started()).measure({ ...usual, durationMs }),
    },
    {
      name: `${name}, waiting`,
      async run(durationMs) {
        const server = await started()
        await server.hoard(backlog, updateBytes)
        return server.measure({ ...usual, durationMs })
      },
    },
    {
      name: `${name}, merging`,
      async run() {
        const server = await started()
        await server.hoard(backlog - server.backlog, updateBytes)
        const sample = await server.churn(updateBytes)
        await server.close()
        return sample
      },
    },
  ]
}
