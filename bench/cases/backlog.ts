/**
 * A server that was down for a long time, or whose bots were: 1,000,000 updates of 300 bytes are pending over 30,000
 * bots, or ten times as many of both, and 100,000 of them belong to one bot. Measures its start, its memory, and how fast
 * the deepest queue is read.
 */
import { get } from 'node:http'
import type { BenchCase, CaseContext, Contestant, Sample } from '../contestant.ts'
import { type LoopHolds, watchLoops } from '../loop-watch.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { firstBotId, type RegisteredBot, ServerUnderTest } from '../server-under-test.ts'

/** How many of the updates belong to one bot. */
const deepUpdates = 100_000
const updatesPerPush = 20_000
/** Streams at the same time that fill the queues; registering has 16 connections. */
const fillingStreams = 4
const pageUpdates = 100
const polledAtATime = 32
/** Until a started server has read what it knows of every bot, which takes 5 to 10 s, and memory stays the same. */
const settleMs = 40_000
/** Until freed memory is returned to the system and deletions that follow responses are done. */
const restMs = 1_500

interface BacklogShape {
  readonly bots: number
  readonly updates: number
  /** Whether the holds of event loops are measured, with an inspector in each process, which needs memory. */
  readonly isWatched: boolean
}

const usual: BacklogShape = { bots: 30_000, updates: 1_000_000, isWatched: true }
const tenfold: BacklogShape = { bots: 300_000, updates: 10_000_000, isWatched: false }

export const backlogCases: readonly BenchCase[] = [
  backlogCase('backlog', usual, {
    targets: [
      { kind: 'figure', figure: 'ready ms', max: 2_000 },
      { kind: 'figure', figure: 'deep hold ms', max: 20 },
      { kind: 'figure', figure: 'all polled hold ms', max: 20 },
    ],
    isLong: true,
  }),
  backlogCase('backlog-10m', tenfold, {
    targets: [
      { kind: 'figure', figure: 'ready ms', max: 2_000 },
      { kind: 'figure', figure: 'first poll ms', max: 50 },
      { kind: 'figure', figure: 'RSS started MB', max: 400 },
      { kind: 'figure', figure: 'RSS settled MB', max: 400 },
    ],
    isLong: true,
    isExtra: true,
    freshRoundsMax: 3,
    msMax: 2_400_000,
  }),
]

function backlogCase(
  name: string,
  shape: BacklogShape,
  rest: Pick<BenchCase, 'targets' | 'isLong' | 'isExtra' | 'freshRoundsMax' | 'msMax'>,
): BenchCase {
  const updates = shape.updates.toLocaleString('en')
  return {
    name,
    title: `Start with ${updates} updates pending over ${shape.bots.toLocaleString('en')} bots`,
    operation: 'start: from the command to /readyz and the first poll answered',
    ...rest,
    async open(context) {
      const empty = new Restarted(context, { ...shape, bots: 0 })
      await empty.begin()
      const full = new Restarted(context, shape)
      await full.begin()
      await full.fill()
      return [
        contestantOf(`${updates} pending`, full, true),
        contestantOf('nothing pending', empty, false),
      ]
    },
  }
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
  readonly #shape: BacklogShape
  #server: ServerUnderTest | undefined
  #bots: readonly RegisteredBot[] = []
  /** The workers' memory after all updates were pushed. */
  #filledBytes = 0
  #take: () => Promise<LoopHolds> = () => Promise.reject(new Error('expected a server'))

  constructor(context: CaseContext, shape: BacklogShape) {
    this.#context = context
    this.#shape = shape
  }

  get server(): ServerUnderTest {
    if (this.#server === undefined) throw new Error('expected a server')
    return this.#server
  }

  async begin(): Promise<void> {
    const { bots, isWatched: isInspected } = this.#shape
    this.#server = await ServerUnderTest.start(this.#context, { isInspected })
    // The last bot has the deep queue.
    this.#bots = await this.server.registerBots(bots + 1)
  }

  /** Pushes to the bots in turn, as updates arrive in practice, and to the deep one separately. */
  async fill(): Promise<void> {
    const random = seededRandom(9)
    // The number of samples does not divide the number of bots, so the updates of a bot differ.
    const samples = Array.from({ length: 997 }, (_, chat) => sampleUpdate(random, chat))
    const { bots, updates } = this.#shape
    let pushed = 0
    const pushSome = async (): Promise<void> => {
      while (pushed < updates - deepUpdates) {
        const first = pushed
        pushed += updatesPerPush
        let text = ''
        for (let index = first; index < first + updatesPerPush; index++) {
          text += `{"bot_id":${firstBotId + (index % bots)}}\n${samples[index % samples.length]}\n`
        }
        await this.server.pushPairs(text)
      }
    }
    await Promise.all(Array.from({ length: fillingStreams }, pushSome))
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
    const { isWatched: isInspected } = this.#shape
    const server = await ServerUnderTest.start(this.#context, { isInspected, directory })
    this.#server = server
    await readyz(server)
    const readyMs = performance.now() - startMs
    await this.#poll(this.#bots[0], 0)
    const seconds = (performance.now() - startMs) / 1_000
    const cpuUs = server.cpuUs()
    if (isInspected) this.#take = await watchLoops(server.inspected)
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
        'PSS started MB': server.proportionalBytes() / 1e6,
      },
    }
  }

  /** Reads the deepest queue from its first page to its end, then polls every bot once. */
  async readOut(): Promise<Record<string, number>> {
    const settled = this.#shape.isWatched ? {} : await this.#settle()
    const beginMs = performance.now()
    let offset = await this.#poll(this.#deep, 0)
    const firstMs = performance.now() - beginMs
    let read = 0
    while (offset > 0) {
      read += pageUpdates
      offset = await this.#poll(this.#deep, offset)
    }
    const perSecond = (read * 1_000) / (performance.now() - beginMs)
    const deep = { 'deep first page ms': firstMs, 'deep updates/s': perSecond }
    // Otherwise, polling each bot would take longer than filling.
    const all = this.#shape.isWatched ? await this.#pollAllWatched() : {}
    return { ...settled, ...deep, ...all }
  }

  async #settle(): Promise<Record<string, number>> {
    await new Promise((resolve) => setTimeout(resolve, settleMs))
    return {
      'RSS settled MB': this.server.residentBytes() / 1e6,
      'PSS settled MB': this.server.proportionalBytes() / 1e6,
    }
  }

  async #pollAllWatched(): Promise<Record<string, number>> {
    await new Promise((resolve) => setTimeout(resolve, restMs))
    const deep = await this.#take()
    const heapBefore = await this.server.heapBytes()
    // This discards the garbage collection of the heap measurement.
    await this.#take()
    await this.#pollAll()
    const all = await this.#take()
    const residentAll = this.server.residentBytes()
    const heapGrowth = (await this.server.heapBytes()) - heapBefore
    return {
      'deep hold ms': deep.busyMsMax,
      'all polled hold ms': all.busyMsMax,
      'RSS all loaded MB': residentAll / 1e6,
      'heap per loaded bot kB': heapGrowth / this.#shape.bots / 1e3,
    }
  }

  async #pollAll(): Promise<void> {
    const rest = this.#bots.values()
    const pollSome = async (): Promise<void> => {
      for (const bot of rest) await this.#poll(bot, 0)
    }
    await Promise.all(Array.from({ length: polledAtATime }, pollSome))
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
