/**
 * Slows down those who do expensive things, and nobody else. Each bot and each client address has a budget (loop-budget.ts).
 * The gate measures what a request costs the event loop and charges that to its client address, and to its bot if the token
 * was valid.
 *
 *     request --> over the budget? --no--> answered --> cost --> charged
 *                      |
 *                      +--yes--> waits, first come, first served, one after the other --> answered
 *                      +--too many wait--> 429
 *
 * A call waits while its bot is over the budget. The gate asks when the request arrives, and again before the body is parsed,
 * because many bodies may arrive at once. Hundreds of bots may share an address behind a reverse proxy or a NAT, so a usual
 * call never waits for its address. What waits while the address is over the budget is a body of more than
 * `loopFreeBodyBytes`, and a request that names no bot.
 *
 * A call with a valid token, be it for an unknown method, is charged for what it takes over `loopCostFreeMs`: a busy bot that makes thousands of usual
 * calls is charged nothing. A request without one is charged in full. Of the private listener only requests without the admin key are
 * charged and wait; probes of its health never wait. Who comes over a Unix socket without a name is not charged: those may
 * be many.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import {
  bodyPieceCostMs,
  budgetBodiesMax,
  budgetSpacingMs,
  budgetWaitersMax,
  budgetWaitersPerDebtorMax,
  budgetWaitMsMax,
  loopCostFreeMs,
  loopFreeBodyBytes,
  privateRefusalCostMs,
} from '../limits.ts'
import { unixClient } from './client-address.ts'
import { LoopBudget } from './loop-budget.ts'
import { LoopMeter } from './loop-meter.ts'

export interface BudgetGateOptions {
  readonly clock: Clock
  /** CPU time of this process, in milliseconds. */
  readonly cpuMs: () => number
  /** As bots are told that the client is to be counted by. */
  readonly clientAddressOf: (request: IncomingMessage) => string
  /** The bot that a request names, if any. */
  readonly botIdOf: (request: IncomingMessage) => number | undefined
  /** Has the admin key, or asks for something that anybody may have at any time. */
  readonly isTrusted: (request: IncomingMessage) => boolean
  /** Answers a request that cannot wait. */
  readonly refuse: (response: ServerResponse, error: PostboteError) => void
}

interface Waiting {
  readonly request: IncomingMessage
  readonly start: () => void
  readonly refuse: (error: PostboteError) => void
}

interface Waiter extends Waiting {
  readonly sinceMs: number
}

type Measured = (request: IncomingMessage, response: ServerResponse, sinceMs: number) => void

export class BudgetGate {
  readonly #options: BudgetGateOptions
  readonly #budget = new LoopBudget()
  readonly #meter: LoopMeter
  /** By debtor, the first that came first. */
  readonly #lines = new Map<string, Waiter[]>()
  #waiting = 0
  /** Of those the ones whose body is in memory. */
  #bodiesWaiting = 0
  /** The latest request to the bot API without a valid token. */
  #refused: IncomingMessage | undefined

  constructor(options: BudgetGateOptions) {
    this.#options = options
    this.#meter = new LoopMeter(options)
  }

  /** How many requests wait now. */
  get waiting(): number {
    return this.#waiting
  }

  /** In front of the bot API. */
  botListener(answer: RequestListener): RequestListener {
    const measured: Measured = (request, response, sinceMs) => {
      answer(request, response)
      const costMs = this.#meter.costMs(sinceMs)
      if (this.#refused === request) this.#chargeClient(request, costMs)
      else if (costMs > loopCostFreeMs) this.#chargeClient(request, costMs - loopCostFreeMs)
    }
    return (request, response) => {
      const nowMs = this.#meter.begin()
      if (!this.#isCrowded(nowMs)) measured(request, response, nowMs)
      else {
        this.#pass({
          request,
          start: () => measured(request, response, this.#meter.begin()),
          refuse: (error) => this.#options.refuse(response, error),
        })
      }
    }
  }

  /** In front of the private API. */
  privateListener(answer: RequestListener): RequestListener {
    return (request, response) => {
      const nowMs = this.#options.clock.monotonicMs()
      if (!this.#isCrowded(nowMs) || this.#options.isTrusted(request)) answer(request, response)
      else {
        this.#pass({
          request,
          start: () => answer(request, response),
          refuse: (error) => this.#options.refuse(response, error),
        })
      }
    }
  }

  /**
   * Call this before the body of a call with a valid token is parsed.
   *
   * @param body `bodyBytes` is its size once unpacked.
   * @returns Undefined if the body may be parsed now; else a promise that resolves when it may, and rejects with
   *   TOO_MANY_REQUESTS if too many wait.
   */
  turn(
    request: IncomingMessage,
    { botId, bodyBytes }: { readonly botId: number; readonly bodyBytes: number },
  ): Promise<void> | undefined {
    const nowMs = this.#options.clock.monotonicMs()
    if (!this.#isCrowded(nowMs)) return undefined
    const debtors = [debtorOf(botId)]
    if (bodyBytes > loopFreeBodyBytes) debtors.unshift(this.#options.clientAddressOf(request))
    const debtor = debtors.find((each) => this.#waitMs(each, nowMs) > 0)
    if (debtor === undefined) return undefined
    if (this.#bodiesWaiting >= budgetBodiesMax) {
      return Promise.reject(this.#tooMany(debtor))
    }
    this.#bodiesWaiting += 1
    return new Promise<void>((start, refuse) => {
      this.#enter(debtor, { request, start, refuse })
    }).finally(() => {
      this.#bodiesWaiting -= 1
    })
  }

  /** A request to the bot API has no valid token: what this turn of the event loop spends on it is charged in full. */
  noteNoToken(request: IncomingMessage): void {
    this.#refused = request
  }

  /** A request to the private listener had no key, or a wrong one. */
  noteRefused(request: IncomingMessage): void {
    this.#chargeClient(request, privateRefusalCostMs)
  }

  /** The body of a request to the bot API comes in many small pieces, each of which costs. */
  notePieces(request: IncomingMessage, pieces: number): void {
    this.#chargeClient(request, pieces * bodyPieceCostMs)
  }

  /** @returns What `spent` wants to know. */
  begin(): number {
    return this.#meter.begin()
  }

  /** A call of this bot, with a valid token, has read its parameters and acted on them since then. */
  spent(request: IncomingMessage, botId: number, sinceMs: number): void {
    const costMs = this.#meter.costMs(sinceMs) - loopCostFreeMs
    if (costMs <= 0) return
    this.#chargeClient(request, costMs)
    this.#budget.charge(debtorOf(botId), costMs, this.#options.clock.monotonicMs())
  }

  #isCrowded(nowMs: number): boolean {
    return this.#waiting > 0 || this.#budget.isAnyoneOver(nowMs)
  }

  #chargeClient(request: IncomingMessage, costMs: number): void {
    const address = this.#options.clientAddressOf(request)
    if (address !== unixClient) {
      this.#budget.charge(address, costMs, this.#options.clock.monotonicMs())
    }
  }

  #pass(waiting: Waiting): void {
    const { request } = waiting
    const botId = this.#options.botIdOf(request)
    const debtor = botId === undefined ? this.#options.clientAddressOf(request) : debtorOf(botId)
    if (this.#waitMs(debtor, this.#options.clock.monotonicMs()) === 0) waiting.start()
    else this.#enter(debtor, waiting)
  }

  #enter(debtor: string, waiting: Waiting): void {
    const line = this.#lines.get(debtor) ?? []
    if (line.length >= budgetWaitersPerDebtorMax || this.#waiting >= budgetWaitersMax) {
      this.#refuse(debtor, waiting)
      return
    }
    this.#waiting += 1
    line.push({ ...waiting, sinceMs: this.#options.clock.monotonicMs() })
    if (line.length > 1) return
    this.#lines.set(debtor, line)
    this.#startLater(debtor, line)
  }

  #refuse(debtor: string, { refuse }: Waiting): void {
    refuse(this.#tooMany(debtor))
  }

  #tooMany(debtor: string): PostboteError {
    const waitMs = this.#budget.waitMs(debtor, this.#options.clock.monotonicMs())
    const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000))
    return new PostboteError('TOO_MANY_REQUESTS', { retryAfterS })
  }

  #waitMs(debtor: string, nowMs: number): number {
    const waitMs = this.#budget.waitMs(debtor, nowMs)
    return waitMs === 0 && this.#lines.has(debtor) ? 1 : waitMs
  }

  /** What a request costs is known only when its body has come: the next one waits for at least as long as that takes. */
  #startLater(debtor: string, line: Waiter[]): void {
    const { clock } = this.#options
    const waitMs = this.#budget.waitMs(debtor, clock.monotonicMs())
    clock.after(Math.max(waitMs, budgetSpacingMs), () => {
      if (this.#budget.waitMs(debtor, clock.monotonicMs()) > 0) {
        this.#startLater(debtor, line)
        return
      }
      const next = line.shift()
      if (line.length === 0) this.#lines.delete(debtor)
      else this.#startLater(debtor, line)
      if (next !== undefined) this.#start(debtor, next)
    })
  }

  #start(debtor: string, waiter: Waiter): void {
    this.#waiting -= 1
    const waitedMs = this.#options.clock.monotonicMs() - waiter.sinceMs
    if (waiter.request.socket.destroyed || waitedMs > budgetWaitMsMax) this.#refuse(debtor, waiter)
    else waiter.start()
  }
}

function debtorOf(botId: number): string {
  return `bot${botId}`
}
