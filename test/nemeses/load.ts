/**
 * Clients of a cluster that push to bots, poll them and receive their webhooks through nodes at random, and what they know:
 *
 *   single   pushes without a key, each sent once
 *   keyed    pushes with a key, sent until they are accepted, and some of them again
 *   streams  NDJSON pairs for all bots, without waiting for results: with keys and without, large ones among small ones. Each
 *            is sent once, but a pair that a stream has left over, which the server certainly did not store, begins the next
 *            one. Some have a stream to each worker, by hints that are new, or old and mostly wrong
 *
 * Requests have a time limit of their own. Clients do not obey Retry-After: they measure when the server is back.
 */
import {
  freshHints,
  type Hints,
  noHints,
  PushStreams,
  staleHints,
} from '../support/producers/push-streams.ts'
import type { PairResult, RawPushStream } from '../support/producers/raw-push-stream.ts'
import { wait } from '../support/server/database.ts'
import type { Answer, RegisteredBot } from '../support/server/server.ts'
import type { Luck } from '../support/simulation/luck.ts'
import { until } from '../support/kit/until.ts'
import type { Balancer, Seat } from './balancer.ts'
import type { BotLedger } from './bot-ledger.ts'
import { largeBytes } from './ordered-pushes.ts'
import { Pulse } from './pulse.ts'

/** Longer than any take-over: a request that takes longer hangs. */
const usualRequestMsMax = 5_000
const pollTimeoutS = 2
const pauseMs = 120
/** After a failure. */
const shortPauseMs = 20
/** Of each lane of streams. */
const streamHints: readonly Hints[] = [noHints, freshHints, staleHints()]
const streamPairs = 200
/** Longer than an open stream waits for the owner of a shard. */
const pairMsMax = 25_000
/** The share of pairs that are large, so that a thread checks them (`checkOver`). */
const largeShare = 0.1
const recoveredMsMax = 60_000
const settledMsMax = 60_000
const orderingKey = 'one'

/** One request of a client, or one pair of a stream, that is over. Times are of the monotonic clock. */
export interface Attempt {
  readonly what: 'push' | 'push with a key' | 'pair' | 'poll' | 'stream'
  readonly startMs: number
  /** What was wrong; undefined if the server did what was asked. */
  readonly failure?: string | undefined
  /** Nothing of it is stored, and the client has to send it again: the server has ended the stream between pairs. */
  readonly isLeft?: boolean
}

export interface LoadOptions {
  readonly balancer: Pick<Balancer, 'pick'>
  readonly luck: Luck
  readonly polling: readonly RegisteredBot[]
  /** Only pushes without a key, so that a small machine has time left. */
  readonly isCalm?: boolean | undefined
  /** A request that takes longer hangs. */
  readonly requestMsMax?: number
  readonly onAttempt?: (attempt: Attempt) => void
}

/** A pair that no stream has taken. */
interface LeftPair {
  readonly ledger: BotLedger
  readonly number: number
}

/** A response, or why there is none. */
type Outcome = Answer | { readonly status: undefined; readonly failure: string }

export class Load {
  readonly ledgers: readonly BotLedger[]
  readonly acknowledgements = new Pulse()
  readonly deliveries = new Pulse()
  /** Responses that no client should get, and how often; requests that took too long. */
  readonly wrong = new Map<string, number>()
  /** The event that happens now. */
  event = 'start'
  readonly #options: LoadOptions
  /** By bot: when its last accepted push began. */
  readonly #acceptedFromMs = new Map<number, number>()
  readonly #pushing: Promise<void>[] = []
  readonly #polling: Promise<void>[] = []
  #isPushing = true
  /** When clients give up pushes that they repeat. */
  #giveUpMs = Number.POSITIVE_INFINITY
  #isPolling = true
  readonly #requestMsMax: number

  /** @param ledgers - of the polling bots, in their order, and then of those with webhooks */
  constructor(options: LoadOptions, ledgers: readonly BotLedger[]) {
    this.#options = options
    this.ledgers = ledgers
    const { polling, isCalm = false, requestMsMax = usualRequestMsMax } = options
    this.#requestMsMax = requestMsMax
    for (const ledger of ledgers) {
      this.#pushing.push(this.#single(ledger))
      if (!isCalm) this.#pushing.push(this.#keyed(ledger))
    }
    const lanes = isCalm ? [] : streamHints
    for (const hints of lanes) this.#pushing.push(this.#streams(hints))
    for (const [nth, bot] of polling.entries()) {
      const ledger = ledgers[nth]
      if (ledger !== undefined) this.#polling.push(this.#poll(bot, ledger))
    }
  }

  /** Resolves when each bot has accepted a push that began after this call. */
  async recovered(): Promise<void> {
    const fromMs = performance.now()
    await until(
      () => this.ledgers.every(({ botId }) => (this.#acceptedFromMs.get(botId) ?? 0) > fromMs),
      recoveredMsMax,
    )
  }

  /** Ends the clients when everything that was accepted has been received, or after a while. */
  async end(): Promise<void> {
    this.#isPushing = false
    this.#giveUpMs = performance.now() + settledMsMax
    await Promise.all(this.#pushing)
    const last = this.ledgers.map((ledger) => this.#pushLast(ledger))
    await Promise.allSettled(last)
    this.#isPolling = false
    await Promise.all(this.#polling)
    for (const ledger of this.ledgers) ledger.settle()
  }

  /** Ends the clients at once. */
  async stop(): Promise<void> {
    this.#isPushing = false
    this.#giveUpMs = 0
    this.#isPolling = false
    await Promise.all([...this.#pushing, ...this.#polling])
  }

  /** What was pushed before is received before. */
  async #pushLast(ledger: BotLedger): Promise<void> {
    const number = ledger.begin()
    await this.#pushWithKey(ledger, number)
    await until(() => ledger.hasReceived(number), settledMsMax)
  }

  async #single(ledger: BotLedger): Promise<void> {
    let lastId = 0
    while (this.#isPushing) {
      const number = ledger.begin()
      const startMs = performance.now()
      const outcome = await this.#push(ledger.botId, number)
      const isSent = outcome.status !== undefined || outcome.failure !== notConnected
      const result = outcome.status === undefined ? undefined : outcome.body
      const id = this.#note(ledger, { number, startMs, result, isSent })
      if (id !== undefined) {
        ledger.expectRising(lastId, id)
        lastId = id
      }
      await wait(id === undefined ? shortPauseMs : pauseMs)
    }
  }

  async #keyed(ledger: BotLedger): Promise<void> {
    const { luck } = this.#options
    while (this.#isPushing) {
      const number = ledger.begin()
      await this.#pushWithKey(ledger, number)
      if (luck.chance(0.2)) await this.#push(ledger.botId, number, `${number}`)
      await wait(pauseMs)
    }
  }

  /** Repeats the push until it is accepted, or until the clients end. */
  async #pushWithKey(ledger: BotLedger, number: number): Promise<void> {
    while (performance.now() < this.#giveUpMs) {
      const startMs = performance.now()
      const outcome = await this.#push(ledger.botId, number, `${number}`)
      const id: unknown = outcome.status === 200 ? outcome.body.update_id : undefined
      if (typeof id === 'number') {
        this.#accepted(ledger, { number, startMs, id })
        return
      }
      await wait(shortPauseMs)
    }
  }

  async #push(botId: number, number: number, key?: string): Promise<Outcome> {
    const url = `/v1/bots/${botId}/updates?ordering_key=${orderingKey}`
    const headers = key === undefined ? {} : { 'idempotency-key': key }
    const body = textOf(number)
    return this.#try(
      (seat) => seat.admin({ method: 'POST', url, headers, body }, this.#requestMsMax),
      key === undefined ? 'push' : 'push with a key',
    )
  }

  async #streams(hints: Hints): Promise<void> {
    const { balancer } = this.#options
    const left: LeftPair[] = []
    while (this.#isPushing || (left.length > 0 && performance.now() < this.#giveUpMs)) {
      const seat = balancer.pick()
      if (seat === undefined) await wait(shortPauseMs)
      else await this.#stream(seat, left, hints)
    }
  }

  /** Sends pairs on one stream, or on one to each worker, those that are left over first, and leaves those that they do not take. */
  async #stream(seat: Seat, left: LeftPair[], hints: Hints): Promise<void> {
    const { luck } = this.#options
    const startMs = performance.now()
    const streams = new PushStreams(seat.server, await hints(seat.server))
    // Otherwise a stream that cannot be opened would be an error without a listener.
    const opened = Promise.all(streams.all.map(openingFailure))
    const cut = seat.cut
    const destroy = (): void => streams.destroy()
    cut.addEventListener('abort', destroy)
    const lastIds = new Map<number, number>()
    const state = { isOpen: true }
    const pairs: Promise<void>[] = []
    const push = async ({ ledger, number }: LeftPair): Promise<void> => {
      const pairStartMs = performance.now()
      const timer = setTimeout(() => {
        this.noteWrong(`a pair of a stream had no result in ${pairMsMax} ms`)
        destroy()
      }, pairMsMax)
      const key = luck.chance(0.5) ? { idempotency_key: `${number}` } : {}
      const head = { bot_id: ledger.botId, ordering_key: orderingKey, ...key }
      const stream = streams.of(ledger.botId)
      const result = await stream.push(head, textOf(number, luck.chance(largeShare)))
      clearTimeout(timer)
      state.isOpen &&= result !== undefined
      // A response that ends in order has the results of all pairs that the server has read.
      const isLeft =
        result === undefined &&
        ((await stream.ended) || (await openingFailure(stream)) === notConnected)
      const failure = isLeft ? undefined : failedPair(result)
      this.#options.onAttempt?.({ what: 'pair', startMs: pairStartMs, failure, isLeft })
      if (isLeft) {
        left.push({ ledger, number })
        return
      }
      const id = this.#note(ledger, { number, startMs: pairStartMs, result })
      if (id === undefined) return
      ledger.expectRising(lastIds.get(ledger.botId) ?? 0, id)
      lastIds.set(ledger.botId, id)
    }
    for (const pair of left.splice(0)) pairs.push(push(pair))
    for (let nth = 0; nth < streamPairs && state.isOpen && this.#isPushing; nth++) {
      const ledger = luck.pick(this.ledgers)
      pairs.push(push({ ledger, number: ledger.begin() }))
      await wait(pauseMs / 4)
    }
    const timer = setTimeout(destroy, pairMsMax)
    const isComplete = await streams.end()
    clearTimeout(timer)
    cut.removeEventListener('abort', destroy)
    await Promise.all(pairs)
    const failure =
      (await opened).find(Boolean) ?? (isComplete ? undefined : 'the response broke off')
    this.#options.onAttempt?.({ what: 'stream', startMs, failure })
    if (failure !== undefined) await wait(shortPauseMs)
  }

  async #poll({ token }: RegisteredBot, ledger: BotLedger): Promise<void> {
    let lastId = 0
    while (this.#isPolling) {
      const path = `/bot${token}/getUpdates?offset=${lastId + 1}&timeout=${pollTimeoutS}`
      const outcome = await this.#try(
        (seat) =>
          seat.send(
            { method: 'GET', url: seat.server.botUrl + path },
            this.#requestMsMax + pollTimeoutS * 1_000,
          ),
        'poll',
      )
      if (outcome.status !== 200) await wait(shortPauseMs)
      else for (const update of outcome.body.result) lastId = this.#receive(ledger, update)
    }
  }

  /** Takes an update that a bot has received, and returns its id. */
  #receive(
    ledger: BotLedger,
    update: { readonly update_id: number; readonly message: { readonly number: number } },
  ): number {
    this.deliveries.beat(ledger.botId, performance.now())
    ledger.receive(update.update_id, update.message.number)
    return update.update_id
  }

  /** Takes a delivery to a webhook. */
  receiveText(botId: number, text: string): void {
    const ledger = this.ledgers.find((each) => each.botId === botId)
    if (ledger !== undefined) this.#receive(ledger, JSON.parse(text))
  }

  /** Notes the outcome of a push that is not repeated. Returns the id of an accepted one. */
  #note(
    ledger: BotLedger,
    push: {
      readonly number: number
      readonly startMs: number
      readonly result: PairResult | undefined
      readonly isSent?: boolean
    },
  ): number | undefined {
    const { number, startMs, result, isSent = true } = push
    const id = result?.update_id
    if (id !== undefined) this.#accepted(ledger, { number, startMs, id })
    else if (isSent && (result?.error === undefined || result.error.code === 'OUTCOME_UNKNOWN'))
      ledger.leaveUnknown(number)
    else ledger.refuse(number)
    return id
  }

  #accepted(
    ledger: BotLedger,
    { number, startMs, id }: { number: number; startMs: number; id: number },
  ): void {
    ledger.accept(number, id)
    this.acknowledgements.beat(ledger.botId, performance.now())
    this.#acceptedFromMs.set(
      ledger.botId,
      Math.max(startMs, this.#acceptedFromMs.get(ledger.botId) ?? 0),
    )
  }

  async #try(
    call: (seat: Seat) => Promise<Answer>,
    what: 'push' | 'push with a key' | 'poll',
  ): Promise<Outcome> {
    const seat = this.#options.balancer.pick()
    if (seat === undefined) return { status: undefined, failure: 'no server' }
    const startMs = performance.now()
    try {
      const answer = await call(seat)
      this.#judge(answer, what)
      const { status, text } = answer
      const failure = status === 200 ? undefined : `${status} ${text}`
      this.#options.onAttempt?.({ what, startMs, failure })
      return answer
    } catch (error) {
      const failure = failureOf(error)
      if (failure === late) this.noteWrong(`a ${what} had no response in time from ${seat.name}`)
      this.#options.onAttempt?.({ what, startMs, failure })
      return { status: undefined, failure }
    }
  }

  #judge({ status, headers, text }: Answer, what: string): void {
    // A poll whose client is gone may still be open when the next one arrives through another node.
    if (status === 200 || (what === 'poll' && status === 409)) return
    const isTimed = status === 503 && headers['retry-after'] !== undefined
    if (!isTimed) this.noteWrong(`${what}: ${status} ${text}`)
  }

  noteWrong(text: string): void {
    const key = `${this.event}: ${text}`
    this.wrong.set(key, (this.wrong.get(key) ?? 0) + 1)
  }
}

const late = 'no response in time'
/** Nobody listens, so nothing was sent. */
const notConnected = 'ECONNREFUSED'

/** Returns why a stream could not be opened. */
function openingFailure({ response }: RawPushStream): Promise<string | undefined> {
  return response.then(
    ({ statusCode }) => (statusCode === 200 ? undefined : `${statusCode}`),
    failureOf,
  )
}

/** Returns why a request got no response. */
function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (String(error.cause).includes('TimeoutError')) return late
  return 'code' in error ? String(error.code) : error.message
}

function failedPair(result: PairResult | undefined): string | undefined {
  if (result === undefined) return 'no result: the stream broke off'
  return result.error?.code
}

function textOf(number: number, isLarge = false): string {
  return JSON.stringify({ message: { number, text: 'x'.repeat(isLarge ? largeBytes : 0) } })
}
