/**
 * Producers that do not wait for results, one of each kind at each node:
 *
 *   stream   an NDJSON stream of pairs for all bots, with keys and without, large ones among small ones
 *   hinted   the same over a stream to each worker of the node. They read anew who has which shard with each opening, and open
 *            them often
 *   stale    the same, but most hints are wrong, and they stay as they were at first, whatever moves
 *   calls    single pushes that are pipelined on one connection
 *
 * What one of them has sent earlier for a bot must have a lower id. They count that, and what became of every push.
 */
import { Pulse } from './pulse.ts'
import { ownerWaitMsMax } from '../../src/api/limits.ts'
import { wait } from '../support/server/database.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import {
  freshHints,
  type Hints,
  noHints,
  PushStreams,
  staleHints,
} from '../support/producers/push-streams.ts'
import type { PairResult } from '../support/producers/raw-push-stream.ts'
import type { Server } from '../support/server/server.ts'

/** Pushes that are sent in one go, and the pause between two such bursts. */
const burst = 8
/** Less, because each node has several producers of pairs. */
const pairBurst = 3
const burstPauseMs = 40
/** Pairs of one producer without a result. */
const openPairsMax = 4_000
/** After so many bursts, a producer with hints opens its streams anew. */
const hintedBursts = 20
/** Every so many pushes one is large: it goes to the thread that checks (`checkOver`). */
const largeEvery = 12
export const largeBytes = 12_000

/** With this flag of the server, the large updates of these producers are checked in a thread. */
export const checkOver = '--check-over=8'

/** What became of some pushes. */
export class PushTally {
  accepted = 0
  /** Pushes that got a lower id than an earlier one of the same producer and bot. */
  inversions = 0
  /** Pushes without a result, because their stream ended before, or their connection. */
  unanswered = 0
  /** Calls that were refused before they had waited for a shard on its way as long as the protocol says. A starved machine needs longer. */
  refusedEarly = 0
  /** By code. */
  readonly refused: Record<string, number> = {}

  refuse(code: string): void {
    this.refused[code] = (this.refused[code] ?? 0) + 1
  }
}

export interface OrderedPushesOptions {
  readonly bots: readonly number[]
  /** Returns the server of a node, or undefined if clients use it no more. */
  readonly nodeOf: (name: string) => Server | undefined
}

type Outcome = PairResult | undefined

/** One producer of pairs, at one node. */
interface PairProducer {
  readonly hints: Hints
  /** It opens its streams anew after so many. */
  readonly bursts: number
  /** By bot: its last id. All results of earlier streams have arrived when the next ones are opened. */
  readonly last: Map<number, number>
}

export class OrderedPushes {
  /** The pushes that have a result since the last `begin`. */
  pairs = new PushTally()
  calls = new PushTally()
  readonly acknowledgements = new Pulse()
  readonly #options: OrderedPushesOptions
  readonly #running: Promise<void>[] = []
  #isOver = false
  #sent = 0

  constructor(options: OrderedPushesOptions) {
    this.#options = options
  }

  get bots(): readonly number[] {
    return this.#options.bots
  }

  begin(): void {
    this.pairs = new PushTally()
    this.calls = new PushTally()
    this.acknowledgements.begin()
  }

  /** Starts producers at a node; they go on after its restart. */
  start(name: string): void {
    this.#pairs(name, noHints)
    this.#pairs(name, freshHints, hintedBursts)
    this.#pairs(name, staleHints())
    this.#running.push(this.#whileRunning(name, (server) => this.#connection(name, server)))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#running)
  }

  #pairs(name: string, hints: Hints, bursts = Number.POSITIVE_INFINITY): void {
    const producer: PairProducer = { hints, bursts, last: new Map() }
    this.#running.push(this.#whileRunning(name, (server) => this.#stream(name, server, producer)))
  }

  async #whileRunning(name: string, use: (server: Server) => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      const server = this.#options.nodeOf(name)
      if (server !== undefined) await use(server)
      await wait(burstPauseMs)
    }
  }

  /** Whether a producer goes on with this server. */
  #isCurrent(name: string, server: Server): boolean {
    return !this.#isOver && this.#options.nodeOf(name) === server
  }

  async #stream(name: string, server: Server, producer: PairProducer): Promise<void> {
    const { last } = producer
    const streams = new PushStreams(server, await producer.hints(server))
    const state = { open: 0, hasEnded: false }
    const push = async (): Promise<void> => {
      const nth = this.#sent++
      const botId = this.#botOf(nth)
      const key = nth % 2 === 0 ? { idempotency_key: `pair-${nth}` } : {}
      state.open++
      const result = await streams.of(botId).push({ bot_id: botId, ...key }, textOf(nth))
      state.open--
      this.#note(this.pairs, { last, botId, result })
      state.hasEnded ||= result === undefined
    }
    for (let left = producer.bursts; left > 0 && !state.hasEnded; left--) {
      if (!this.#isCurrent(name, server)) break
      const room = Math.min(pairBurst, openPairsMax - state.open)
      for (let nth = 0; nth < room; nth++) void push()
      await wait(burstPauseMs)
    }
    await streams.end()
  }

  async #connection(name: string, server: Server): Promise<void> {
    const connection = RawConnection.to(server.privateUrl)
    const last = new Map<number, number>()
    try {
      while (this.#isCurrent(name, server)) {
        const first = this.#sent
        this.#sent += burst
        // Two for one bot, then two for another.
        const bots = Array.from({ length: burst }, (_, nth) => this.#botOf((first + nth) >> 1))
        const startMs = performance.now()
        connection.write(bots.map((botId, nth) => callText(server, botId, first + nth)).join(''))
        for (const botId of bots) {
          const { status, body } = await connection.answer()
          const result: PairResult = JSON.parse(body)
          this.#note(this.calls, { last, botId, result })
          if (status !== 200 && performance.now() - startMs < ownerWaitMsMax)
            this.calls.refusedEarly++
        }
        await wait(burstPauseMs)
      }
    } catch {
      this.calls.unanswered++
    } finally {
      connection.socket.destroy()
    }
  }

  #note(
    tally: PushTally,
    { last, botId, result }: { last: Map<number, number>; botId: number; result: Outcome },
  ): void {
    const id = result?.update_id
    if (result === undefined) tally.unanswered++
    if (result?.error !== undefined) tally.refuse(result.error.code)
    if (id === undefined) return
    tally.accepted++
    this.acknowledgements.beat(botId, performance.now())
    if (id <= (last.get(botId) ?? 0)) tally.inversions++
    else last.set(botId, id)
  }

  #botOf(nth: number): number {
    const { bots } = this.#options
    return bots[nth % bots.length] ?? 0
  }
}

function textOf(nth: number): string {
  const text = 'x'.repeat(nth % largeEvery === 0 ? largeBytes : 10)
  return JSON.stringify({ message: { nth, text } })
}

function callText({ key }: Server, botId: number, nth: number): string {
  const body = textOf(nth)
  const head = [
    `POST /v1/bots/${botId}/updates HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${key}`,
    `Content-Length: ${body.length}`,
    ...(nth % 3 === 0 ? [`Idempotency-Key: call-${nth}`] : []),
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
