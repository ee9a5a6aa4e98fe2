/**
 * Memory of waiting long polls: resident bytes of all processes of a newly started server, before and after 10,000 bots
 * asked for their name, as frameworks do first, and began to wait. Polls come directly, and over connections that belong
 * to the worker that does not own the bot.
 */
import type { BenchCase, CaseContext, Contestant, Sample } from '../contestant.ts'
import { type Metered, meterCpu } from '../cpu-meter.ts'
import { HelperProcess } from '../helper-process.ts'
import { helperServers } from '../http-contestants.ts'
import type { IdleConnection, IdleQuestion } from '../idle-question.ts'
import { botsByWorker } from '../poll-plan.ts'
import { type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'
import { until } from '../until.ts'

const polls = 10_000
const waitMsMax = 60_000
const kib = 1_024
const idleFigure = 'kB a waiting poll'

export const idleCase: BenchCase = {
  name: 'idle-polls',
  title: `${polls.toLocaleString('en')} waiting long polls`,
  operation: 'poll begun',
  targets: [{ kind: 'figure', figure: idleFigure, max: 14 }],
  charted: { kind: 'figure', figure: idleFigure },
  isLong: true,
  freshRoundsMax: 3,
  open: (context) => openIdle(context, 'postbote', directConnections),
}

export const idleForwardedCase: BenchCase = {
  name: 'idle-polls-forwarded',
  title: `${polls.toLocaleString('en')} waiting long polls, each through another worker`,
  operation: 'poll begun',
  targets: [{ kind: 'figure', figure: idleFigure, max: 20 }],
  charted: { kind: 'figure', figure: idleFigure },
  isLong: true,
  freshRoundsMax: 3,
  open: (context) => openIdle(context, 'postbote', forwardedConnections),
}

type Connections = (bots: readonly RegisteredBot[], workers: number) => IdleConnection[]

async function openIdle(
  context: CaseContext,
  name: string,
  connections: Connections,
): Promise<Contestant[]> {
  const workers = Math.max(context.workers, 2)
  // The bots are registered at another server, because registering them would leave memory in use.
  const before = await ServerUnderTest.start(context, { workers, isInspected: false })
  const bots = await before.registerBots(polls)
  await before.close()
  const { directory } = before
  const own: Contestant = {
    name,
    async run() {
      const server = await ServerUnderTest.start(context, {
        workers,
        directory,
        isInspected: false,
      })
      const sample = await idleSample(context, {
        processes: server,
        question: { port: server.botPort, connections: connections(bots, workers) },
        isWaiting: async () => (await server.gauge('polls_waiting')) >= polls,
      })
      await server.close()
      return sample
    },
  }
  return [own, bareContestant(context)]
}

function bareContestant(context: CaseContext): Contestant {
  const connection = { first: requestOf('/first'), last: requestOf('/wait') }
  const connections = Array.from({ length: polls }, () => connection)
  return {
    name: 'bare node:http',
    async run() {
      const { helpers, ports } = await helperServers(
        { ...context, workers: 1 },
        'node-http',
        () => ({
          bodyBytes: 0,
        }),
      )
      const [helper] = helpers
      if (helper === undefined) throw new Error('expected a process')
      const processes = {
        cpuUsByProcess: () => helper.cpuUsByProcess(),
        residentBytesByProcess: () => ({ 'node-http': helper.residentBytes() }),
      }
      const sample = await idleSample(context, {
        processes,
        question: { port: ports[0] ?? 0, connections },
        isWaiting: () => Promise.resolve(true),
      })
      await helper.close()
      return sample
    },
  }
}

interface IdleOptions {
  readonly processes: Metered & { residentBytesByProcess(): Readonly<Record<string, number>> }
  readonly question: IdleQuestion
  isWaiting(): Promise<boolean>
}

async function idleSample(context: CaseContext, options: IdleOptions): Promise<Sample> {
  const { processes, question } = options
  const load = new HelperProcess('idle-polls', context)
  const before = processes.residentBytesByProcess()
  const costs = meterCpu([processes], [load])
  const startMs = performance.now()
  const operations = await load.ask<number>(question)
  await until(() => options.isWaiting(), waitMsMax)
  const seconds = (performance.now() - startMs) / 1_000
  const spent = costs()
  const figures: Record<string, number> = { [idleFigure]: 0 }
  for (const [name, bytes] of Object.entries(processes.residentBytesByProcess())) {
    const each = (bytes - (before[name] ?? 0)) / operations / kib
    figures[`kB ${name}`] = each
    figures[idleFigure] = (figures[idleFigure] ?? 0) + each
  }
  await load.close()
  return { operations, seconds, ...spent, figures }
}

function directConnections(bots: readonly RegisteredBot[]): IdleConnection[] {
  return bots.map((bot) => ({ first: requestOf(`/bot${bot.token}/getMe`), last: pollOf(bot) }))
}

/** Each connection begins with a call for a bot of the other worker. */
function forwardedConnections(bots: readonly RegisteredBot[], workers: number): IdleConnection[] {
  const byWorker = botsByWorker(bots, workers)
  return byWorker.flatMap((own, worker) => {
    const [other] = byWorker[(worker + 1) % workers] ?? []
    if (other === undefined) throw new Error('expected a bot of each worker')
    const first = requestOf(`/bot${other.token}/getMe`)
    return own.map((bot) => ({ first, last: pollOf(bot) }))
  })
}

function pollOf({ token }: RegisteredBot): string {
  return requestOf(`/bot${token}/getUpdates?timeout=50`)
}

function requestOf(target: string): string {
  return `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n`
}
