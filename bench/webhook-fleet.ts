/**
 * The real server with bots whose webhooks are all at the sink, and the two kinds of load on it.
 *
 * `deliver` begins with the updates pushed and as many deliveries in flight as possible, whose responses the sink holds
 * back; it ends when no bot has pending updates. So it measures deliveries alone, without the flood gates. `steady`
 * pushes at a rate far below saturation and measures the delays of updates.
 */
import type { CaseContext, Sample } from './contestant.ts'
import { meterCpu } from './cpu-meter.ts'
import type { Delays } from './delays.ts'
import { forEachOf } from './for-each-of.ts'
import { HelperProcess } from './helper-process.ts'
import { sampleUpdate, seededRandom } from './sample-updates.ts'
import { firstBotId, type RegisteredBot, type ServerUnderTest } from './server-under-test.ts'
import type { SinkIdentity, SinkQuestion } from './sink-messages.ts'
import type { SteadyQuestion } from './steady-messages.ts'
import { until } from './until.ts'

export interface WebhookShape {
  readonly bots: number
  /** Connections of each bot. */
  readonly connections: number
  /** Ordering keys of each bot. */
  readonly keys: number
}

export interface WebhookSink {
  readonly helper: HelperProcess
  readonly origin: string
}

export interface SteadyPace {
  readonly ratePerSecond: number
  readonly durationMs: number
}

export interface SteadySample {
  readonly operations: number
  readonly seconds: number
  readonly cpuUs: number
  readonly loadCpuUs: number
  readonly delays: Delays
}

const secret = 'a-secret-of-the-bench'
export const webhookPath = '/hook/of/the/bench'
export const webhookHeaders = Object.entries({
  'Content-Type': 'application/json',
  'X-Service-Bot-Api-Secret-Token': secret,
  'X-Telegram-Bot-Api-Secret-Token': secret,
}).flat()
const waitMsMax = 30_000

export async function openSink(
  context: CaseContext,
  identity?: SinkIdentity,
): Promise<WebhookSink> {
  const helper = new HelperProcess('webhook-sink', context)
  const port = await helper.ask<number>(asked({ kind: 'listen', identity }))
  return { helper, origin: `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${port}` }
}

export class WebhookFleet {
  readonly server: ServerUnderTest
  readonly #bots: readonly RegisteredBot[]
  readonly #shape: WebhookShape
  readonly #sink: HelperProcess
  readonly #pusher: HelperProcess

  private constructor(parts: {
    readonly context: CaseContext
    readonly server: ServerUnderTest
    readonly bots: readonly RegisteredBot[]
    readonly shape: WebhookShape
    readonly sink: WebhookSink
  }) {
    this.server = parts.server
    this.#bots = parts.bots
    this.#shape = parts.shape
    this.#sink = parts.sink.helper
    this.#pusher = new HelperProcess('steady-pusher', parts.context)
  }

  static async open(
    context: CaseContext,
    options: {
      readonly shape: WebhookShape
      readonly sink: WebhookSink
      readonly server: ServerUnderTest
    },
  ): Promise<WebhookFleet> {
    const { server, shape, sink } = options
    const bots = await server.registerBots(shape.bots)
    await forEachOf(bots, (bot) =>
      server.botMethod(bot.token, 'setWebhook', {
        url: `${sink.origin}${webhookPath}`,
        max_connections: shape.connections,
        secret_token: secret,
      }),
    )
    const fleet = new WebhookFleet({ ...options, context, bots })
    // A first success of each webhook lets it open connections fast.
    await fleet.deliver(shape.bots)
    return fleet
  }

  /** `count` is divided evenly: every bot gets enough to keep its connections busy, or one update. */
  async deliver(count: number): Promise<Sample> {
    const { server } = this
    const sink = this.#sink
    await sink.ask(asked({ kind: 'hold' }))
    await server.pushPairs(this.#pairs(count))
    const inFlight = Math.min(count, inFlightMax(this.#shape))
    await until(
      async () => (await sink.ask<number>(asked({ kind: 'held' }))) === inFlight,
      waitMsMax,
    )
    return server.profiled(async () => {
      const costs = meterCpu(server.processes, [sink])
      const startMs = performance.now()
      await sink.ask(asked({ kind: 'release', count }))
      await forEachOf(this.#bots, (bot) => until(() => this.#isDone(bot), waitMsMax))
      return {
        operations: count,
        seconds: (performance.now() - startMs) / 1_000,
        ...costs(),
      }
    })
  }

  async steady(pace: SteadyPace): Promise<SteadySample> {
    const { server } = this
    const { bots, keys } = this.#shape
    const sink = this.#sink
    await sink.ask(asked({ kind: 'watch' }))
    const costs = meterCpu(server.processes, [sink])
    const startMs = performance.now()
    const question: SteadyQuestion = {
      ...pace,
      port: server.privatePort,
      adminKey: server.adminKey,
      firstBotId,
      bots,
      keys,
    }
    const count = await this.#pusher.ask<number>(question)
    const delays = await sink.ask<Delays>(asked({ kind: 'delays', count }))
    return {
      operations: count,
      seconds: (performance.now() - startMs) / 1_000,
      ...costs(),
      delays,
    }
  }

  async #isDone({ token }: RegisteredBot): Promise<boolean> {
    const info = await this.server.botMethod<{ pending_update_count: number }>(
      token,
      'getWebhookInfo',
      {},
    )
    return info.pending_update_count === 0
  }

  #pairs(count: number): string {
    const random = seededRandom(count)
    const { bots, keys } = this.#shape
    const samples = Array.from({ length: keys }, (_, key) => sampleUpdate(random, key))
    let text = ''
    for (let index = 0; index < count; index++) {
      const botId = firstBotId + (index % bots)
      const key = Math.floor(index / bots) % keys
      text += `{"bot_id":${botId},"ordering_key":"${key}"}\n${samples[key]}\n`
    }
    return text
  }
}

/** The most deliveries in flight of all bots together, if enough updates are pending. */
export function inFlightMax({ bots, connections, keys }: WebhookShape): number {
  return bots * Math.min(connections, keys)
}

/** Checks the type of a question. */
export function asked(question: SinkQuestion): SinkQuestion {
  return question
}
