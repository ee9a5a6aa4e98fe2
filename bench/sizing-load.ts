/**
 * A server for the cases about sizing: bots that poll or have webhooks get updates at a steady rate, while other bots hold a
 * backlog. Memory and disk are the most that it takes during a measurement, because that is what it must have: V8 and LevelDB let
 * garbage grow until they collect it. So a life begins with enough updates that both have done so.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { SizeLoad } from '../src/cli/size/estimate-size.ts'
import type { CaseContext, Sample } from './contestant.ts'
import { meterCpu } from './cpu-meter.ts'
import { forEachOf } from './for-each-of.ts'
import { HelperProcess } from './helper-process.ts'
import type { LongPollerQuestion } from './latency-messages.ts'
import { sampleUpdate, seededRandom } from './sample-updates.ts'
import { firstBotId, type RegisteredBot, ServerUnderTest } from './server-under-test.ts'
import type { SteadyQuestion } from './steady-messages.ts'
import { openSink, webhookPath, type WebhookSink } from './webhook-fleet.ts'

/** What a server had to do in a sample, and what it took. */
export type SizingFigures = Readonly<
  Record<
    'workers' | 'bots' | 'rate' | 'backlog' | 'update B' | 'cores' | 'PSS MB' | 'disk MB',
    number
  >
>

export type SizingSample = Sample & { readonly figures: SizingFigures }

export interface SizingPace {
  readonly updatesPerSecond: number
  readonly updateBytes: number
  readonly durationMs: number
}

const keys = 10
/** Enough for code that is compiled and a heap that has grown; at a low rate, both would take minutes. */
const warmUp = { updatesPerSecond: 2_500, updateBytes: 8_192, durationMs: 6_000 }
/** What is left of earlier work is not that of the measurement. */
const rest = { updatesPerSecond: 20, updateBytes: 300, durationMs: 1_500 }
/** LevelDB merges for a while what was stored at once. */
const restAfterHoard = { ...rest, durationMs: 10_000 }
/**
 * As many updates as fill the write buffers of all shards, of 4 MiB each, until the tables are merged, which is when there are four.
 * Each update is in them twice, the second time when it is removed.
 */
const churnMs = 12_000
const churnBytesPerSecond = 12_500_000
const recordBytes = 120
/** Below the limits of a queue. */
const backlogOfBotMax = 80_000
const backlogBytesOfBotMax = 100_000_000
const pushBytes = 1_000_000
const firstHoardingBotId = firstBotId * 2
const lookMs = 250

export class SizingServer {
  readonly #server: ServerUnderTest
  readonly #mode: SizeLoad['mode']
  readonly #workers: number
  readonly #context: CaseContext
  readonly #pusher: HelperProcess
  readonly #clients: HelperProcess[] = []
  readonly #ends: (() => Promise<void>)[]
  #sink: WebhookSink | undefined
  #bots = 0
  #hoardingBots = 0
  #backlog = 0
  #memoryBytes = 0
  #diskBytes = 0

  private constructor(
    server: ServerUnderTest,
    context: CaseContext,
    {
      mode,
      workers,
      ends,
    }: {
      readonly mode: SizeLoad['mode']
      readonly workers: number
      readonly ends: (() => Promise<void>)[]
    },
  ) {
    this.#ends = ends
    this.#server = server
    this.#context = context
    this.#mode = mode
    this.#workers = workers
    this.#pusher = new HelperProcess('steady-pusher', context)
  }

  /** Starts a server with these bots. */
  static async start(
    context: CaseContext,
    options: {
      readonly mode: SizeLoad['mode']
      readonly workers: number
      readonly bots: number
    },
  ): Promise<SizingServer> {
    const ends: (() => Promise<void>)[] = []
    const own: CaseContext = { ...context, atEnd: (end) => void ends.push(end) }
    context.atEnd(() => endAll(ends))
    const server = await ServerUnderTest.start(own, { workers: options.workers })
    const sizing = new SizingServer(server, own, { ...options, ends })
    await sizing.addBots(options.bots)
    return sizing
  }

  async warmUp(): Promise<void> {
    await this.measure(warmUp)
    await this.measure(rest)
  }

  /** Lets the tables of every shard fill and be merged. */
  churn(updateBytes: number): Promise<SizingSample> {
    const updatesPerSecond = Math.round(churnBytesPerSecond / (updateBytes + recordBytes))
    return this.measure({ updatesPerSecond, updateBytes, durationMs: churnMs })
  }

  get workers(): number {
    return this.#workers
  }

  get bots(): number {
    return this.#bots
  }

  get backlog(): number {
    return this.#backlog
  }

  /** Adds bots that get updates, and their clients. */
  async addBots(count: number): Promise<void> {
    if (count === 0) return
    const bots = await this.#server.registerBots(count, firstBotId + this.#bots)
    this.#bots += count
    await (this.#mode === 'poll' ? this.#poll(bots) : this.#receive(bots))
    await this.measure(rest)
  }

  /** Pushes updates to bots that nobody reads. */
  async hoard(count: number, updateBytes: number): Promise<void> {
    if (count === 0) return
    const bots = Math.ceil(
      Math.max(count / backlogOfBotMax, (count * updateBytes) / backlogBytesOfBotMax),
    )
    const firstId = firstHoardingBotId + this.#hoardingBots
    await this.#server.registerBots(bots, firstId)
    this.#hoardingBots += bots
    this.#backlog += count
    const random = seededRandom(9)
    // LevelDB compresses equal updates, but those of a bot differ.
    const samples = Array.from({ length: 997 }, (_, chat) =>
      sampleUpdate(random, chat, updateBytes),
    )
    const updatesPerPush = Math.ceil(pushBytes / updateBytes)
    for (let pushed = 0; pushed < count; pushed += updatesPerPush) {
      const pairs = Array.from({ length: Math.min(updatesPerPush, count - pushed) }, (_, nth) => {
        const index = pushed + nth
        return `{"bot_id":${firstId + (index % bots)}}\n${samples[index % samples.length]}\n`
      })
      await this.#server.pushPairs(pairs.join(''))
    }
    await this.measure(restAfterHoard)
  }

  async measure({ updatesPerSecond, updateBytes, durationMs }: SizingPace): Promise<SizingSample> {
    this.#memoryBytes = 0
    this.#diskBytes = 0
    const server = this.#server
    const question: SteadyQuestion = {
      port: server.privatePort,
      adminKey: server.adminKey,
      firstBotId,
      bots: this.#bots,
      keys,
      updateBytes,
      ratePerSecond: updatesPerSecond,
      durationMs,
    }
    const costs = meterCpu(server.processes, [...this.#clients, this.#pusher])
    const startMs = performance.now()
    const pushing = this.#pusher.ask<number>(question)
    let isOver = false
    const looking = this.#lookUntil(() => isOver)
    const operations = await pushing.finally(() => (isOver = true))
    const seconds = (performance.now() - startMs) / 1_000
    const cost = costs()
    await looking
    const figures = {
      workers: this.#workers,
      bots: this.#bots,
      rate: updatesPerSecond,
      backlog: this.#backlog,
      'update B': updateBytes,
      cores: cost.cpuUs / 1e6 / seconds,
      'PSS MB': this.#memoryBytes / 1e6,
      'disk MB': this.#diskBytes / 1e6,
    }
    return { operations, seconds, ...cost, figures }
  }

  /** Ends the clients and the server, so that they take nothing from the next one. */
  close(): Promise<void> {
    return endAll(this.#ends)
  }

  async #lookUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#look()
      await new Promise((resolve) => setTimeout(resolve, lookMs))
    }
  }

  async #look(): Promise<void> {
    this.#memoryBytes = Math.max(this.#memoryBytes, this.#server.proportionalBytes())
    this.#diskBytes = Math.max(this.#diskBytes, await bytesUnder(this.#server.directory))
  }

  async #poll(bots: readonly RegisteredBot[]): Promise<void> {
    const poller = new HelperProcess('long-poller', this.#context)
    this.#clients.push(poller)
    const tokens = bots.map(({ token }) => token)
    const question: LongPollerQuestion = {
      kind: 'start',
      port: this.#server.botPort,
      tokens,
      isSpread: true,
    }
    await poller.ask(question)
  }

  async #receive(bots: readonly RegisteredBot[]): Promise<void> {
    this.#sink ??= await openSink(this.#context)
    const { helper, origin } = this.#sink
    if (!this.#clients.includes(helper)) this.#clients.push(helper)
    await forEachOf(bots, ({ token }) =>
      this.#server.botMethod(token, 'setWebhook', { url: `${origin}${webhookPath}` }),
    )
  }
}

async function endAll(ends: (() => Promise<void>)[]): Promise<void> {
  for (const end of ends.splice(0).toReversed()) await end()
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
