/**
 * The delay from push to poll: 100 bots with a long poll each, and a producer that writes 2,000 updates per second into
 * one NDJSON stream, each stamped with the time, for random bots. (The webhook cases measure the delay from push to
 * webhook.)
 */
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { type Metered, meterCpu } from '../cpu-meter.ts'
import type { Delays } from '../delays.ts'
import { HelperProcess } from '../helper-process.ts'
import { commonNginx } from '../http-contestants.ts'
import type { LongPollerQuestion, PolledEndpoint } from '../latency-messages.ts'
import { firstBotId, startServer, type StartServer } from '../server-under-test.ts'
import type { SteadyQuestion } from '../steady-messages.ts'

const bots = 100
const keys = 10
const ratePerSecond = 2_000
/** Longer rounds, so that the p99 of a round rests on more than a few updates. */
const roundLengthFactor = 2

export interface OwnServer {
  readonly name?: string
  /** Default: `startServer`. */
  readonly start?: StartServer
}

export const latencyCase: BenchCase = {
  name: 'push-to-poll',
  title: `from push to long poll, ${bots} bots, ${ratePerSecond.toLocaleString('en')} updates a second`,
  operation: 'update',
  targets: [{ kind: 'figure', figure: 'p50 ms', max: 3 }],
  charted: { kind: 'figure', figure: 'p50 ms' },
  async open(context) {
    const own = await openServer(context)
    if (context.isAlone) return [own]
    const hubs = [await openHub(context, 'node-hub'), await openHub(context, 'node-durable-hub')]
    return [own, ...hubs, ...(await commonNginx(context))]
  },
}

export async function openServer(
  context: CaseContext,
  { name = 'postbote', start = startServer }: OwnServer = {},
): Promise<Contestant> {
  const server = await start(context, {})
  const registered = await server.registerBots(bots)
  const contestant = await polled(context, {
    name,
    processes: server.processes,
    bot: { port: server.botPort, tokens: registered.map(({ token }) => token) },
    private: { port: server.privatePort, adminKey: server.adminKey },
    profiled: (work) => server.profiled(work),
  })
  return {
    ...contestant,
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
  }
}

async function openHub(
  context: CaseContext,
  file: 'node-hub' | 'node-durable-hub',
): Promise<Contestant> {
  const hub = new HelperProcess(file, context)
  const directory = await mkdtemp(join(context.directory, 'hub-'))
  const port = await hub.ask<number>({ directory })
  return polled(context, {
    name: file === 'node-hub' ? 'bare node:http in memory' : 'bare node:http and leveldown',
    processes: [hub],
    bot: { port, tokens: Array.from({ length: bots }, (_, index) => `${firstBotId + index}:x`) },
    private: { port, adminKey: '' },
    profiled: (work) => work(),
  })
}

interface PolledOptions {
  readonly name: string
  readonly processes: readonly Metered[]
  readonly bot: PolledEndpoint
  readonly private: { readonly port: number; readonly adminKey: string }
  profiled<T>(work: () => Promise<T>): Promise<T>
}

async function polled(context: CaseContext, options: PolledOptions): Promise<Contestant> {
  const { name, processes, bot } = options
  const poller = new HelperProcess('long-poller', context)
  const pusher = new HelperProcess('steady-pusher', context)
  const askPoller = <T>(question: LongPollerQuestion): Promise<T> => poller.ask<T>(question)
  await askPoller({ kind: 'start', ...bot })
  return {
    name,
    async run(durationMs) {
      const question: SteadyQuestion = {
        ...options.private,
        firstBotId,
        bots,
        keys,
        ratePerSecond,
        durationMs: durationMs * roundLengthFactor,
      }
      await askPoller({ kind: 'watch' })
      const costs = meterCpu(processes, [poller, pusher])
      const startMs = performance.now()
      const operations = await options.profiled(() => pusher.ask<number>(question))
      const delays = await askPoller<Delays>({ kind: 'delays', count: operations })
      return {
        operations,
        seconds: (performance.now() - startMs) / 1_000,
        ...costs(),
        figures: { 'p50 ms': delays.p50Ms, 'p99 ms': delays.p99Ms, 'max ms': delays.maxMs },
      }
    },
  }
}
