/**
 * Clients of a cluster that push to bots, poll them and receive their webhooks through nodes at random, and what they know:
 *
 *   single   pushes without a key, each sent once
 *   keyed    pushes with a key, sent until they are accepted, and some of them again
 *   streams  NDJSON pairs for all bots, each sent once, without waiting for results: with keys and without, large ones among
 *            small ones
 *
 * Requests have a time limit of their own. Clients do not obey Retry-After: they measure when the server is back.
 */
import { type PairResult, RawPushStream } from '../support/producers/raw-push-stream.ts'
import { wait } from '../support/server/database.ts'
import type { Answer, RegisteredBot } from '../support/server/server.ts'
import type { Luck } from '../support/simulation/luck.ts'
import { until } from '../support/kit/until.ts'
import type { Balancer, Seat } from './balancer.ts'
import type { BotLedger } from './bot-ledger.ts'
import { largeBytes } from './ordered-pushes.ts'
import { Pulse } from './pulse.ts'

/** Longer than any take-over: a request that takes longer hangs. */
const requestMsMax = 5_000
const pollTimeoutS = 2
const pauseMs = 120
/** After a failure. */
const shortPauseMs = 20
const streamLanes = 2
const streamPairs = 200
/** Longer than an open stream waits for the owner of a shard. */
const pairMsMax = 25_000
/** The share of pairs that are large, so that a thread checks them (`checkOver`). */
const largeShare = 0.1
const recoveredMsMax = 60_000
const settledMsMax = 60_000
const orderingKey = 'one'

export interface LoadOptions {
  readonly balancer: Balancer
  readonly luck: Luck
  readonly polling: readonly RegisteredBot[]
  /** Only pushes without a key, so that a small machine has time left. */
  readonly isCalm?: boolean | undefined
}

export class Load {
  readonly ledgers: readonly BotLedger[]
  readonly acknowledgements = new Pulse()
  readonly deliveries = new Pulse()
  /** Responses that no client should get, and how often; requests that took too long. */
  readonly wrong = new Map<string, number>()
  /** Why pushes were not accepted, and how often. */
  readonly reasons = new Map<string, number>()
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

  /** @param ledgers - of the polling bots, in their order, and then of those with webhooks */
  constructor(options: LoadOptions, ledgers: readonly BotLedger[]) {
    this.#options = options
    this.ledgers = ledgers
    const { polling, isCalm = false } = options
    for (const ledger of ledgers) {
      this.#pushing.push(this.#single(ledger))
      if (!isCalm) this.#pushing.push(this.#keyed(ledger))
    }
    const lanes = isCalm ? 0 : streamLanes
    for (let lane = 0; lane < lanes; lane++) this.#pushing.push(this.#streams())
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
      const answer = await this.#push(ledger.botId, number)
      const id = this.#note(ledger, { number, startMs, result: answer?.body })
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
      const answer = await this.#push(ledger.botId, number, `${number}`)
      const id: unknown = answer?.body?.update_id
      if (answer?.status === 200 && typeof id === 'number') {
        this.#accepted(ledger, { number, startMs, id })
        return
      }
      await wait(shortPauseMs)
    }
  }

  async #push(botId: number, number: number, key?: string): Promise<Answer | undefined> {
    const url = `/v1/bots/${botId}/updates?ordering_key=${orderingKey}`
    const headers = key === undefined ? {} : { 'idempotency-key': key }
    const body = textOf(number)
    return this.#try((seat) => seat.admin({ method: 'POST', url, headers, body }, requestMsMax))
  }

  async #streams(): Promise<void> {
    const { balancer } = this.#options
    while (this.#isPushing) {
      const seat = balancer.pick()
      if (seat === undefined) await wait(shortPauseMs)
      else await this.#stream(seat)
    }
  }

  async #stream(seat: Seat): Promise<void> {
    const { luck } = this.#options
    const stream = new RawPushStream(seat.server)
    stream.response.catch(() => undefined)
    const cut = seat.cut
    const destroy = (): void => stream.destroy()
    cut.addEventListener('abort', destroy)
    const lastIds = new Map<number, number>()
    const state = { isOpen: true }
    const push = async (): Promise<void> => {
      const ledger = luck.pick(this.ledgers)
      const number = ledger.begin()
      const startMs = performance.now()
      const timer = setTimeout(() => {
        this.noteWrong(`a pair of a stream had no result in ${pairMsMax} ms`)
        destroy()
      }, pairMsMax)
      const key = luck.chance(0.5) ? { idempotency_key: `${number}` } : {}
      const head = { bot_id: ledger.botId, ordering_key: orderingKey, ...key }
      const result = await stream.push(head, textOf(number, luck.chance(largeShare)))
      clearTimeout(timer)
      state.isOpen &&= result !== undefined
      const id = this.#note(ledger, { number, startMs, result, isPair: true })
      if (id === undefined) return
      ledger.expectRising(lastIds.get(ledger.botId) ?? 0, id)
      lastIds.set(ledger.botId, id)
    }
    for (let nth = 0; nth < streamPairs && state.isOpen && this.#isPushing; nth++) {
      void push()
      await wait(pauseMs / 4)
    }
    const timer = setTimeout(destroy, pairMsMax)
    await stream.end()
    clearTimeout(timer)
    cut.removeEventListener('abort', destroy)
  }

  async #poll({ token }: RegisteredBot, ledger: BotLedger): Promise<void> {
    let lastId = 0
    while (this.#isPolling) {
      const path = `/bot${token}/getUpdates?offset=${lastId + 1}&timeout=${pollTimeoutS}`
      const answer = await this.#try(
        (seat) =>
          seat.send(
            { method: 'GET', url: seat.server.botUrl + path },
            requestMsMax + pollTimeoutS * 1_000,
          ),
        'poll',
      )
      if (answer?.status !== 200) await wait(shortPauseMs)
      else for (const update of answer.body.result) lastId = this.#receive(ledger, update)
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
      readonly isPair?: boolean
    },
  ): number | undefined {
    const { number, startMs, result } = push
    const id = result?.update_id
    if (id === undefined) {
      const what = push.isPair === true ? 'a pair' : 'a push'
      this.#count(this.reasons, `${what}: ${result?.error?.code ?? 'no response'}`)
    }
    if (id !== undefined) this.#accepted(ledger, { number, startMs, id })
    else if (result?.error === undefined || result.error.code === 'OUTCOME_UNKNOWN')
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

  /** Returns undefined if there is no response. */
  async #try(
    call: (seat: Seat) => Promise<Answer>,
    what: 'push' | 'poll' = 'push',
  ): Promise<Answer | undefined> {
    const seat = this.#options.balancer.pick()
    if (seat === undefined) return undefined
    try {
      const answer = await call(seat)
      this.#judge(answer, what)
      return answer
    } catch (error) {
      const isLate = error instanceof Error && String(error.cause).includes('TimeoutError')
      if (isLate) this.noteWrong(`a ${what} had no response in time from ${seat.name}`)
      return undefined
    }
  }

  #judge({ status, headers, text }: Answer, what: 'push' | 'poll'): void {
    // A poll whose client is gone may still be open when the next one arrives through another node.
    if (status === 200 || (what === 'poll' && status === 409)) return
    const isTimed = status === 503 && headers['retry-after'] !== undefined
    if (!isTimed) this.noteWrong(`${what}: ${status} ${text}`)
  }

  noteWrong(text: string): void {
    this.#count(this.wrong, text)
  }

  #count(counts: Map<string, number>, text: string): void {
    const key = `${this.event}: ${text}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
}

function textOf(number: number, isLarge = false): string {
  return JSON.stringify({ message: { number, text: 'x'.repeat(isLarge ? largeBytes : 0) } })
}
