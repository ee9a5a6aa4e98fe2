/**
 * Questions about all bots of a server with 100,000: the lists and sums that the dashboard asks for. While one is asked
 * again and again, a bot of each worker polls every 10 ms, so its delays show what the questions cost other bots. The last
 * contestant is the dashboard in Chromium, if that is installed: the time from a key to the rows that it selects.
 */
import type { BenchCase, CaseContext, Contestant, Sample } from '../contestant.ts'
import { meterCpu } from '../cpu-meter.ts'
import { DashboardTyping } from '../dashboard-typing.ts'
import { HelperProcess } from '../helper-process.ts'
import type { HttpQuestion, HttpSample } from '../http-sample.ts'
import { type LoopHolds, watchLoops } from '../loop-watch.ts'
import { botsByWorker, directPlan, polledBots } from '../poll-plan.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'

const bots = 100_000
/** Every tenth bot has some of them. */
const updates = 30_000
const probeEveryMs = 10
const busyFigure = 'busy max ms'
const rowsFigure = 'p95 ms'
const pageName = 'the page: from a key to its rows'

const questions = [
  'bots?sort=pending&limit=200',
  'bots?sort=oldest_age&limit=200',
  'bots?state=stuck&sort=oldest_age&limit=200',
  'bots?state=idle&limit=200',
  'bots?prefix=1099999&sort=pending&limit=200',
  'bots?limit=200',
  'summary',
  'nodes',
] as const

export const fleetCase: BenchCase = {
  name: 'fleet',
  title: `Questions about all of ${bots.toLocaleString('en')} bots`,
  operation: 'question',
  targets: [
    ...questions.map((of) => ({ kind: 'figure', figure: busyFigure, max: 50, of }) as const),
    { kind: 'figure', figure: rowsFigure, max: 300, of: pageName },
  ],
  isExtra: true,
  async open(context) {
    const server = await ServerUnderTest.start(context, { isInspected: true })
    const registered = await server.registerBots(bots)
    await fill(server, registered)
    const take = await watchLoops(server.inspected)
    const probes = await Probes.open(context, server, registered)
    const parts = { server, take, probes }
    const typing = await DashboardTyping.open(
      context,
      server,
      registered.map(({ botId }) => botId),
    )
    return [
      contestantOf({ ...parts, name: 'no question', ask: rest }),
      ...questions.map((question) =>
        contestantOf({
          ...parts,
          name: question,
          async ask() {
            await server.private('GET', `/v1/${question}`)
            return undefined
          },
        }),
      ),
      ...(typing === undefined
        ? []
        : [contestantOf({ ...parts, name: pageName, ask: () => typing.next() })]),
    ]
  },
}

async function fill(server: ServerUnderTest, registered: readonly RegisteredBot[]): Promise<void> {
  const random = seededRandom(11)
  let text = ''
  for (let index = 0; index < updates; index++) {
    const nth = Math.floor(random() * (bots / 10)) * 10
    text += `{"bot_id":${registered[nth]?.botId}}\n${sampleUpdate(random, index)}\n`
  }
  await server.pushPairs(text)
}

interface FleetParts {
  readonly server: ServerUnderTest
  readonly take: () => Promise<LoopHolds>
  readonly probes: Probes
}

interface AskParts extends FleetParts {
  readonly name: string
  /** Asks once. Returns the time that it took in ms, if that is not all of the call. */
  readonly ask: () => Promise<number | undefined>
}

/** Asks one question after the other for as long as the polls go on. */
function contestantOf({ name, server, take, probes, ask }: AskParts): Contestant {
  return {
    name,
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
    async run(durationMs): Promise<Sample> {
      await take()
      const costs = meterCpu([server], [])
      const startMs = performance.now()
      const { tookMs, delaysMs } = await server.profiled(() =>
        askWhile(ask, probes.poll(durationMs)),
      )
      const seconds = (performance.now() - startMs) / 1_000
      const spent = costs()
      const holds = await take()
      return {
        operations: tookMs.length,
        seconds,
        ...spent,
        figures: {
          'p50 ms': partOf(tookMs, 0.5),
          [rowsFigure]: partOf(tookMs, 0.95),
          [busyFigure]: holds.busyMsMax,
          'gc max ms': holds.gcMsMax,
          'poll p50 ms': partOf(delaysMs, 0.5),
          'poll p99 ms': partOf(delaysMs, 0.99),
        },
      }
    },
  }
}

async function askWhile(
  ask: AskParts['ask'],
  polling: Promise<HttpSample>,
): Promise<{ readonly tookMs: readonly number[]; readonly delaysMs: readonly number[] }> {
  const tookMs: number[] = []
  const over = new AbortController()
  const polled = polling.finally(() => over.abort())
  while (!over.signal.aborted) {
    const sentMs = performance.now()
    const own = await ask()
    tookMs.push(own ?? performance.now() - sentMs)
  }
  return { tookMs, delaysMs: (await polled).delaysMs }
}

/** The polls of one bot of each worker. */
class Probes {
  readonly #load: HelperProcess
  readonly #connections: HttpQuestion['connections']

  private constructor(load: HelperProcess, connections: HttpQuestion['connections']) {
    this.#load = load
    this.#connections = connections
  }

  static async open(
    context: CaseContext,
    server: ServerUnderTest,
    registered: readonly RegisteredBot[],
  ): Promise<Probes> {
    // The bots with an odd index have no updates.
    const quiet = registered.filter((_bot, nth) => nth % 10 === 1)
    const some = botsByWorker(quiet, context.workers).flatMap((own) => own.slice(0, 1))
    const polled = await polledBots(server, some, { updates: 0 })
    const plan = directPlan(server, polled, { updates: 0 })
    const connections = plan.map((each) => ({ ...each, probeEveryMs }))
    return new Probes(new HelperProcess('http-load', context), connections)
  }

  poll(durationMs: number): Promise<HttpSample> {
    const question: HttpQuestion = { connections: this.#connections, durationMs }
    return this.#load.ask(question)
  }
}

async function rest(): Promise<undefined> {
  await new Promise((resolve) => setTimeout(resolve, probeEveryMs))
}

/** Returns the smallest value that this part of all values does not exceed. */
function partOf(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * part) - 1] ?? Number.NaN
}
