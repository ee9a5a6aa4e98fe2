/**
 * The load of the cases about sizing: bots that poll or have webhooks get updates at a steady rate, while other bots hold a
 * backlog. Each load has a server of its own, so that its memory and its disk are those of this load.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { SizeLoad } from '../src/cli/size/estimate-size.ts'
import type { CaseContext, Sample } from './contestant.ts'
import { meterCpu } from './cpu-meter.ts'
import { HelperProcess } from './helper-process.ts'
import type { LongPollerQuestion } from './latency-messages.ts'
import { sampleUpdate, seededRandom } from './sample-updates.ts'
import { firstBotId, type RegisteredBot, ServerUnderTest } from './server-under-test.ts'
import type { SteadyQuestion } from './steady-messages.ts'
import { openSink, type SteadyPace, webhookPath } from './webhook-fleet.ts'

export interface SizingLoad extends SizeLoad {
  readonly workers?: number
}

/** The figures of a sample, from which the table of `postbote size` is made. */
export type SizingFigures = Readonly<
  Record<'workers' | 'bots' | 'rate' | 'backlog' | 'cores' | 'PSS MB' | 'disk MB', number>
>

const usualWorkers = 2
const keys = 10
/** At a low rate, the server would compile its code for minutes, so every load begins with many updates. */
const warmUp = { ratePerSecond: 2_000, durationMs: 4_000 }
/** Below the limit of a queue. */
const backlogOfBotMax = 80_000
const updatesPerPush = 2_000
const firstHoardingBotId = firstBotId * 2

export async function measureSizing(
  context: CaseContext,
  load: SizingLoad,
  durationMs: number,
): Promise<Sample & { readonly figures: SizingFigures }> {
  const { workers = usualWorkers } = load
  const ends: (() => Promise<void>)[] = []
  const own: CaseContext = { ...context, atEnd: (end) => void ends.push(end) }
  try {
    const server = await ServerUnderTest.start(own, { workers })
    await hoard(server, load.backlog)
    const bots = await server.registerBots(load.bots)
    const helper = await openClients(own, { server, bots, mode: load.mode })
    const pusher = new HelperProcess('steady-pusher', own)
    const push = (pace: SteadyPace): Promise<number> => {
      const question: SteadyQuestion = {
        port: server.privatePort,
        adminKey: server.adminKey,
        firstBotId,
        bots: load.bots,
        keys,
        ...pace,
      }
      return pusher.ask<number>(question)
    }
    await push(warmUp)
    const costs = meterCpu(server.processes, [helper, pusher])
    const startMs = performance.now()
    const operations = await push({ ratePerSecond: load.updatesPerSecond, durationMs })
    const seconds = (performance.now() - startMs) / 1_000
    const cost = costs()
    const figures = {
      workers,
      bots: load.bots,
      rate: load.updatesPerSecond,
      backlog: load.backlog,
      cores: cost.cpuUs / 1e6 / seconds,
      'PSS MB': server.proportionalBytes() / 1e6,
      'disk MB': (await bytesUnder(server.directory)) / 1e6,
    }
    return { operations, seconds, ...cost, figures }
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

async function openClients(
  context: CaseContext,
  {
    server,
    bots,
    mode,
  }: {
    readonly server: ServerUnderTest
    readonly bots: readonly RegisteredBot[]
    readonly mode: SizingLoad['mode']
  },
): Promise<HelperProcess> {
  if (mode === 'poll') {
    const poller = new HelperProcess('long-poller', context)
    const tokens = bots.map(({ token }) => token)
    const question: LongPollerQuestion = { kind: 'start', port: server.botPort, tokens }
    await poller.ask(question)
    return poller
  }
  const { helper, origin } = await openSink(context)
  for (const { token } of bots)
    await server.botMethod(token, 'setWebhook', { url: `${origin}${webhookPath}` })
  return helper
}

/** Pushes the backlog to bots that nobody reads. */
async function hoard(server: ServerUnderTest, backlog: number): Promise<void> {
  if (backlog === 0) return
  const bots = Math.ceil(backlog / backlogOfBotMax)
  await server.registerBots(bots, firstHoardingBotId)
  const random = seededRandom(9)
  // LevelDB compresses equal updates, but those of a bot differ.
  const samples = Array.from({ length: 997 }, (_, chat) => sampleUpdate(random, chat))
  for (let pushed = 0; pushed < backlog; pushed += updatesPerPush) {
    const count = Math.min(updatesPerPush, backlog - pushed)
    const pairs = Array.from({ length: count }, (_, nth) => {
      const index = pushed + nth
      return `{"bot_id":${firstHoardingBotId + (index % bots)}}\n${samples[index % samples.length]}\n`
    })
    await server.pushPairs(pairs.join(''))
  }
}

async function bytesUnder(directory: string): Promise<number> {
  let bytes = 0
  for (const name of await readdir(directory, { recursive: true })) {
    try {
      const file = await stat(join(directory, name))
      // What is allocated: LevelDB's logs and maps may have holes.
      if (file.isFile()) bytes += file.blocks * 512
    } catch {
      // LevelDB removes files while it runs.
    }
  }
  return bytes
}
