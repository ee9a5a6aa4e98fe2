/**
 * How much one sick bot slows down 1,000 healthy ones. Their updates arrive at a steady rate, and their delay from push
 * to receipt is measured without a sick bot, and beside a bot with 100,000 pending updates and a dead endpoint of three
 * kinds. Each of the four contestants has its own server, so that their memory can be compared. A sick bot has its
 * webhook only while its contestant is measured.
 */
import type { BenchCase, CaseContext, Contestant, Sample } from '../contestant.ts'
import { HelperProcess } from '../helper-process.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { firstBotId, type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'
import type { SickCounts, Sickness, SickQuestion } from '../sick-messages.ts'
import { openSink, WebhookFleet, type WebhookSink } from '../webhook-fleet.ts'

const healthy = { bots: 1_000, connections: 40, keys: 10 }
/** Far below saturation, so that the effect of the sick bot shows. */
const ratePerSecond = 1_000
const sickUpdates = 100_000
const updatesPerPush = 20_000
const sickBotId = firstBotId + healthy.bots
/** Rounds last longer than usual, so that the sick bot opens three connections, which it does 2 s apart. */
const roundLengthFactor = 5

interface SickShape {
  readonly name: string
  readonly title: string
  /** The number of keys over which the pending updates are spread. */
  readonly keys: number
}

const shapes: readonly SickShape[] = [
  { name: 'fairness', title: '10,000 ordering keys', keys: 10_000 },
  { name: 'fairness-one-key', title: 'one ordering key', keys: 1 },
  { name: 'fairness-all-keys', title: 'as many ordering keys', keys: sickUpdates },
]

export const fairnessCases: readonly BenchCase[] = shapes.map((shape) => ({
  name: shape.name,
  title:
    `${healthy.bots.toLocaleString('en')} healthy webhooks at ${ratePerSecond.toLocaleString('en')} updates a second, ` +
    `beside one with 100,000 pending over ${shape.title}`,
  operation: 'delivery to a healthy bot',
  targets: [],
  isExtra: true,
  async open(context) {
    const sink = await openSink(context)
    const alone = await openContestant(context, { sink, shape, sickness: undefined })
    if (context.isAlone) {
      return [await openContestant(context, { sink, shape, sickness: '500s' })]
    }
    const contestants = [alone]
    for (const sickness of ['refused', 'hanging', '500s'] as const) {
      contestants.push(await openContestant(context, { sink, shape, sickness }))
    }
    return contestants
  },
}))

interface ContestantOptions {
  readonly sink: WebhookSink
  readonly shape: SickShape
  readonly sickness: Sickness | undefined
}

async function openContestant(
  context: CaseContext,
  { sink, shape, sickness }: ContestantOptions,
): Promise<Contestant> {
  const server = await ServerUnderTest.start(context, { isInspected: true })
  const fleet = await WebhookFleet.open(context, { shape: healthy, sink, server })
  const sick = sickness === undefined ? undefined : await openSick(context, server, sickness)
  await sick?.pushAll(shape.keys)
  let residentBytes = 0
  return {
    name: sickness === undefined ? 'no sick bot' : `sick: ${sickness}`,
    async run(durationMs) {
      await sick?.begin()
      const { delays, ...sample } = await server.profiled(() =>
        fleet.steady({ ratePerSecond, durationMs: durationMs * roundLengthFactor }),
      )
      const counts = await sick?.counts()
      residentBytes = server.residentBytes()
      const heapBytes = await server.heapBytes()
      await sick?.end()
      return withFigures(sample, {
        'p50 ms': delays.p50Ms,
        'p99 ms': delays.p99Ms,
        'max ms': delays.maxMs,
        'sick connections': counts?.connectionsMax ?? 0,
        'requests to it': counts?.requests ?? 0,
        'heap MB': heapBytes / 1e6,
      })
    },
    // Measured while the sick bot had its webhook.
    residentBytes: () => residentBytes,
    profiles: server.profiles,
  }
}

function withFigures(
  { operations, seconds, cpuUs, loadCpuUs }: Omit<Sample, 'figures'>,
  figures: Readonly<Record<string, number>>,
): Sample {
  return { operations, seconds, cpuUs, loadCpuUs, figures }
}

async function openSick(
  context: CaseContext,
  server: ServerUnderTest,
  sickness: Sickness,
): Promise<SickBot> {
  const [bot] = await server.registerBots(1, sickBotId)
  if (bot === undefined) throw new Error('expected a bot')
  return new SickBot({
    server,
    bot,
    sickness,
    endpoint: new HelperProcess('sick-endpoint', context),
  })
}

class SickBot {
  readonly #server: ServerUnderTest
  readonly #bot: RegisteredBot
  readonly #sickness: Sickness
  readonly #endpoint: HelperProcess

  constructor(parts: {
    readonly server: ServerUnderTest
    readonly bot: RegisteredBot
    readonly sickness: Sickness
    readonly endpoint: HelperProcess
  }) {
    this.#server = parts.server
    this.#bot = parts.bot
    this.#sickness = parts.sickness
    this.#endpoint = parts.endpoint
  }

  async pushAll(keys: number): Promise<void> {
    const random = seededRandom(6)
    for (let first = 0; first < sickUpdates; first += updatesPerPush) {
      let text = ''
      for (let index = first; index < first + updatesPerPush; index++) {
        const key = index % keys
        text += `{"bot_id":${this.#bot.botId},"ordering_key":"${key}"}\n${sampleUpdate(random, key)}\n`
      }
      await this.#server.pushPairs(text)
    }
  }

  async begin(): Promise<void> {
    const port = await this.#endpoint.ask<number>(asked({ kind: 'listen' }))
    await this.#server.botMethod(this.#bot.token, 'setWebhook', {
      url: `http://127.0.0.1:${port}/sick`,
      max_connections: healthy.connections,
    })
    await this.#endpoint.ask(asked({ kind: 'fall', sickness: this.#sickness }))
  }

  counts(): Promise<SickCounts> {
    return this.#endpoint.ask<SickCounts>(asked({ kind: 'counts' }))
  }

  /** The pending updates stay. */
  async end(): Promise<void> {
    await this.#server.botMethod(this.#bot.token, 'deleteWebhook', {})
  }
}

/** Checks the type of a question. */
function asked(question: SickQuestion): SickQuestion {
  return question
}
