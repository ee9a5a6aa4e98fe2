/**
 * A server that was down for a long time, or whose bots were: 1,000,000 updates of 300 bytes are pending over 30,000
 * bots, a tenth of them in one bot. Measures its start, its memory, and how fast the deepest queue is read.
 */
import { get } from 'node:http'
import type { BenchCase, CaseContext, Contestant, Sample } from '../contestant.ts'
import { type LoopHolds, watchLoops } from '../loop-watch.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { firstBotId, type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'

const bots = 30_000
const updates = 1_000_000
/** How many of the updates belong to one bot. */
const deepUpdates = 100_000
const updatesPerPush = 20_000
const pageUpdates = 100
const polledAtATime = 32
/** Until freed memory is returned to the system and deletions that follow responses are done. */
const restMs = 1_500

export const backlogCase: BenchCase = {
  name: 'backlog',
  title: 'Start with 1,000,000 updates pending over 30,000 bots',
  operation: 'start: from the command to /readyz and the first poll answered',
  targets: [
    { kind: 'figure', figure: 'ready ms', max: 2_000 },
    { kind: 'figure', figure: 'deep hold ms', max: 20 },
    { kind: 'figure', figure: 'all polled hold ms', max: 20 },
  ],
  isLong: true,
  async open(context) {
    const empty = new Restarted(context, 1)
    await empty.begin()
    // The last bot has the deep queue.
    const full = new Restarted(context, bots + 1)
    await full.begin()
    await full.fill()
    return [
      contestantOf('1,000,000 pending', full, true),
      contestantOf('nothing pending', empty, false),
    ]
  },
}

function contestantOf(name: string, restarted: Restarted, isFull: boolean): Contestant {
  return {
    name,
    residentBytes: () => restarted.server.residentBytes(),
    async run() {
      const start = await restarted.restart()
      if (!isFull) return start
      const figures = { ...start.figures, ...(await restarted.readOut()) }
      await restarted.fillDeep()
      return { ...start, figures }
    },
  }
}

/** A server that is ended and started again on the same data. */
class Restarted {
  readonly #context: CaseContext
  readonly #count: number
  #server: ServerUnderTest | undefined
  #bots: readonly RegisteredBot[] = []
  /** The workers' memory after all updates were pushed. */
  #filledBytes = 0
  #take: () => Promise<LoopHolds> = () => Promise.reject(new Error('expected a server'))

  constructor(context: CaseContext, count: number) {
    this.#context = context
    this.#count = count
  }

  get server(): ServerUnderTest {
    if (this.#server === undefined) throw new Error('expected a server')
    return this.#server
  }

  async begin(): Promise<void> {
    this.#server = await ServerUnderTest.start(this.#context, { isInspected: true })
    this.#bots = await this.server.registerBots(this.#count)
  }

  /** Pushes to the bots in turn, as updates arrive in practice, and to the deep one separately. */
  async fill(): Promise<void> {
    const random = seededRandom(9)
    const samples = Array.from({ length: 1_000 }, (_, chat) => sampleUpdate(random, chat))
    for (let pushed = 0; pushed < updates - deepUpdates; pushed += updatesPerPush) {
      let text = ''
      for (let index = pushed; index < pushed + updatesPerPush; index++) {
        text += `{"bot_id":${firstBotId + (index % bots)}}\n${samples[index % samples.length]}\n`
      }
      await this.server.pushPairs(text)
    }
    await this.fillDeep()
    this.#filledBytes = this.server.residentBytes()
  }

  async fillDeep(): Promise<void> {
    const random = seededRandom(10)
    const sample = sampleUpdate(random, 1)
    const pair = `{"bot_id":${this.#deep.botId}}\n${sample}\n`
    for (let pushed = 0; pushed < deepUpdates; pushed += updatesPerPush) {
      await this.server.pushPairs(pair.repeat(updatesPerPush))
    }
  }

  async restart(): Promise<Sample> {
    await this.server.close()
    const startMs = performance.now()
    const { directory } = this.server
    const server = await ServerUnderTest.start(this.#context, { isInspected: true, directory })
    this.#server = server
    await readyz(server)
    const readyMs = performance.now() - startMs
    await this.#poll(this.#bots[0], 0)
    const seconds = (performance.now() - startMs) / 1_000
    const cpuUs = server.cpuUs()
    this.#take = await watchLoops(server.inspected)
    return {
      operations: 1,
      seconds,
      cpuUs,
      loadCpuUs: 0,
      figures: {
        'ready ms': readyMs,
        'first poll ms': seconds * 1_000 - readyMs,
        'RSS filled MB': this.#filledBytes / 1e6,
        'RSS started MB': server.residentBytes() / 1e6,
      },
    }
  }

  /** Reads the deepest queue from its first page to its end, then polls every bot once. */
  async readOut(): Promise<Record<string, number>> {
    const beginMs = performance.now()
    let offset = await this.#poll(this.#deep, 0)
    const firstMs = performance.now() - beginMs
    let read = 0
    while (offset > 0) {
      read += pageUpdates
      offset = await this.#poll(this.#deep, offset)
    }
    const perSecond = (read * 1_000) / (performance.now() - beginMs)
    await new Promise((resolve) => setTimeout(resolve, restMs))
    const deep = await this.#take()
    const heapBefore = await this.server.heapBytes()
    // This discards the garbage collection of the heap measurement.
    await this.#take()
    const rest = this.#bots.values()
    const pollSome = async (): Promise<void> => {
      for (const bot of rest) await this.#poll(bot, 0)
    }
    await Promise.all(Array.from({ length: polledAtATime }, pollSome))
    const all = await this.#take()
    const residentAll = this.server.residentBytes()
    return {
      'deep first page ms': firstMs,
      'deep updates/s': perSecond,
      'deep hold ms': deep.busyMsMax,
      'all polled hold ms': all.busyMsMax,
      'RSS all loaded MB': residentAll / 1e6,
      'heap per loaded bot kB': ((await this.server.heapBytes()) - heapBefore) / bots / 1e3,
    }
  }

  get #deep(): RegisteredBot {
    const bot = this.#bots.at(-1)
    if (bot === undefined) throw new Error('expected bots')
    return bot
  }

  /** Returns the offset after the page; 0 if the page was empty. */
  async #poll(bot: RegisteredBot | undefined, offset: number): Promise<number> {
    const body = { offset, limit: pageUpdates }
    const page = await this.server.botMethod<readonly { readonly update_id: number }[]>(
      bot?.token ?? '',
      'getUpdates',
      body,
    )
    const last = page.at(-1)
    return last === undefined ? 0 : last.update_id + 1
  }
}

/** Resolves when /readyz returns 200. */
async function readyz({ privatePort: port }: ServerUnderTest): Promise<void> {
  for (;;) {
    const status = await new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, path: '/readyz' }, (response) => {
        response.resume()
        resolve(response.statusCode)
      }).on('error', reject)
    })
    if (status === 200) return
  }
}
