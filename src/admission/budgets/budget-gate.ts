/**
 * Slows down clients and bots whose requests are expensive, and no others. Each bot, each client address and each key of the
 * private API has a budget (loop-budget.ts). The gate measures what a request costs the event loop and charges that to its
 * client address, and to its bot if the token was valid.
 *
 *     request --> over the budget? --no--> answered --> cost --> charged
 *                      |
 *                      +--yes--> waits in a first-come, first-served line --> answered
 *                      +--too many wait--> 429
 *
 * A call waits while its bot is over the budget. The gate checks when the request arrives, and again before the body is
 * parsed, because many bodies may arrive together. Hundreds of bots may share an address through a reverse proxy or a
 * NAT, so a usual call never waits for its address. While an address is over the budget, only bodies of more than
 * `loopFreeBodyBytes` and requests that name no bot wait for it.
 *
 * A call with a valid token, even of an unknown method, is charged for what it takes beyond `loopCostFreeMs`: a busy bot
 * with thousands of usual calls is charged nothing. A request without a valid token is charged in full. On the private
 * listener a request is charged if it has no valid key or asks for what its key may not do, and a call with a key or a link for
 * what it takes beyond `loopCostFreeMs` (`payerOf`). Requests without a key wait here, those with a key in
 * admission/budgets/call-turns.ts, parts of a long call here as well, and health probes never. A client of a Unix socket
 * without an X-Real-Ip is not charged, because it may stand for many clients.
 *
 * To bound one more thing that clients compete for, first look in docs/inside/ledgers.md for what counts the same client; design.md
 * says what a new ledger needs.
 *
 * The admin key is for what an operator must be able to do whatever else goes on: its calls begin at once, and nothing of it is
 * refused. But the parts of its long calls wait like those of others, so that no search holds up the bots.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Clock } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { loopCostFreeMs } from '../../http/limits.ts'
import { type ClientOf, keyAccount } from '../../http/client.ts'
import { holdReading } from '../connections/hold-reading.ts'
import { LoopBudget } from './loop-budget.ts'
import { LoopMeter } from './loop-meter.ts'
import type { LoopPayer } from '../../http/loop-payer.ts'
import { kib } from '../../kit/limits.ts'

export interface BudgetGateOptions {
  readonly clock: Clock
  /** Returns the CPU time of this process in milliseconds. */
  readonly cpuMs: () => number
  readonly clientOf: ClientOf
  /** Returns the bot that a request names, if any. */
  readonly botIdOf: (request: IncomingMessage) => number | undefined
  /** Returns whether a request has a valid key or a session, or asks for something that anybody may have at any time. */
  readonly isTrusted: (request: IncomingMessage) => boolean
  /** Refuses a request that cannot wait. */
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

/**
 * A piece is charged as this much time of the event loop: Node's parser takes 2.4 to 3.9 s for 900,000 pieces of one
 * byte.
 */
export const bodyPieceCostMs = 0.003
/**
 * Parsing a body of this size takes less than `loopCostFreeMs`, so a call whose body is no larger never waits for its
 * client address.
 */
export const loopFreeBodyBytes = 16 * kib
/**
 * A refusal on the private listener is charged this much: its work is spread over several turns of the event loop, so it
 * is not measured.
 */
export const privateRefusalCostMs = 0.1
/**
 * This many requests wait for one debtor to have paid; further ones get 429. Chosen: enough for the parallel connections
 * of one client; with `budgetSpacingMs` cheap ones pass within a third of a second.
 */
export const budgetWaitersPerDebtorMax = 16
/**
 * This many connections wait for one key to have paid for its pieces. Chosen: half of `budgetWaitersMax`, which leaves room for
 * others; no producer that is not hostile sends pieces of some bytes on this many.
 */
const budgetWaitersPerKeyMax = 500
/**
 * This many requests wait in a worker for all debtors together. Chosen: 62 debtors with full lines; each waiting request
 * holds a connection.
 */
const budgetWaitersMax = 1_000
/** This many of the waiting requests may hold their body in memory, usually up to a mebibyte each. */
const budgetBodiesMax = 32
/** Waiting requests of one debtor start this far apart, because the cost of one is known only a moment later. */
const budgetSpacingMs = 20
/**
 * A request that has waited this long is refused: a debt is paid within ten seconds (`loopDebtMsMax`), so a longer wait
 * means that others keep adding to it.
 */
const budgetWaitMsMax = 10_000

export class BudgetGate {
  readonly #options: BudgetGateOptions
  readonly #budget = new LoopBudget()
  readonly #meter: LoopMeter
  /** The waiting requests by debtor, oldest first. */
  readonly #lines = new Map<string, Waiter[]>()
  #waiting = 0
  /** The requests whose connections are not read. */
  readonly #held = new WeakSet<IncomingMessage>()
  /** How many of the waiting requests hold their body in memory. */
  #bodiesWaiting = 0
  /** The latest request to the bot API without a valid token. */
  #refused: IncomingMessage | undefined

  constructor(options: BudgetGateOptions) {
    this.#options = options
    this.#meter = new LoopMeter(options.clock, options.cpuMs)
  }

  /** How many requests wait now. */
  get waiting(): number {
    return this.#waiting
  }

  /** Wraps the listener of the bot API. */
  botListener(handle: RequestListener): RequestListener {
    const measured: Measured = (request, response, sinceMs) => {
      handle(request, response)
      const costMs = this.#meter.costMs(sinceMs)
      if (this.#refused === request) this.#chargeClient(request, costMs)
      else if (costMs > loopCostFreeMs) this.#chargeClient(request, costMs - loopCostFreeMs)
    }
    return (request, response) => {
      const nowMs = this.#meter.begin()
      if (!this.#isCrowded(nowMs)) measured(request, response, nowMs)
      else this.#pass(response, () => measured(request, response, this.#meter.begin()))
    }
  }

  /** Wraps the listener of the private API. */
  privateListener(handle: RequestListener): RequestListener {
    return (request, response) => {
      const nowMs = this.#options.clock.monotonicMs()
      if (!this.#isCrowded(nowMs) || this.#options.isTrusted(request)) handle(request, response)
      else this.#pass(response, () => handle(request, response))
    }
  }

  /**
   * Call this before the body of a call with a valid token is parsed.
   *
   * @param body - `bodyBytes` is the decompressed size of the body
   * @returns undefined if the body may be parsed now; otherwise a promise that resolves when it may, and rejects with
   *   TOO_MANY_REQUESTS if too many requests wait
   */
  turn(
    request: IncomingMessage,
    { botId, bodyBytes }: { readonly botId: number; readonly bodyBytes: number },
  ): Promise<void> | undefined {
    const nowMs = this.#options.clock.monotonicMs()
    if (!this.#isCrowded(nowMs)) return undefined
    const debtors = [debtorOf(botId)]
    if (bodyBytes > loopFreeBodyBytes) debtors.unshift(this.#options.clientOf(request).account)
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

  /** Returns whether the client address of a request is over its budget, or has requests that wait. */
  isOver(request: IncomingMessage): boolean {
    const nowMs = this.#options.clock.monotonicMs()
    return (
      this.#isCrowded(nowMs) && this.#waitMs(this.#options.clientOf(request).account, nowMs) > 0
    )
  }

  /** Records that a request to the bot API has no valid token: its cost in this turn of the event loop is charged in full. */
  noteNoToken(request: IncomingMessage): void {
    this.#refused = request
  }

  /** Charges a request to the private listener that had no key, a wrong one, or one that may not do what it asked for. */
  noteRefused(request: IncomingMessage): void {
    this.#chargeClient(request, privateRefusalCostMs)
  }

  /** Returns how long the calls of this holder of a key must wait, in milliseconds. */
  holderWaitMs(holder: string): number {
    const nowMs = this.#options.clock.monotonicMs()
    return this.#budget.isAnyoneOver(nowMs) ? this.#budget.waitMs(keyAccount(holder), nowMs) : 0
  }

  /**
   * Charges the sender for the pieces in which the body of a request arrives. Each piece costs, however small it is. While the
   * sender is over its budget the connection is not read, and the held connections of a sender go on one after the other.
   */
  notePieces(request: IncomingMessage, pieces: number): void {
    const debtor = this.#chargeClient(request, pieces * bodyPieceCostMs)
    if (this.#held.has(request)) return
    if (this.#waitMs(debtor, this.#options.clock.monotonicMs()) === 0) return
    this.#held.add(request)
    const letGo = holdReading(request.socket)
    this.#enter(debtor, {
      request,
      start: () => {
        this.#held.delete(request)
        letGo()
      },
      refuse: () => request.destroy(),
    })
  }

  /** @returns the start of a measurement, for `spent` */
  begin(): number {
    return this.#meter.begin()
  }

  /** Charges a call of this bot, with a valid token, for reading its parameters and acting on them since `begin`. */
  spent(request: IncomingMessage, botId: number, sinceMs: number): void {
    const costMs = this.#meter.costMs(sinceMs) - loopCostFreeMs
    if (costMs <= 0) return
    this.#chargeClient(request, costMs)
    this.#budget.charge(debtorOf(botId), costMs, this.#options.clock.monotonicMs())
  }

  /** Returns who pays for a call that has a valid key, or a link to this bot: the family of the key, or the bot. */
  payerOf(request: IncomingMessage, botId?: number): LoopPayer {
    const { clock, clientOf } = this.#options
    const holder = clientOf(request).holder ?? 'root'
    const debtor = botId === undefined ? callsDebtor(holder) : debtorOf(botId)
    const isAdmin = debtor === adminDebtor
    const charge = (costMs: number): void =>
      this.#budget.charge(debtor, costMs, clock.monotonicMs())
    return {
      charge,
      begin: () => this.#meter.begin(),
      spent: (sinceMs) => {
        const costMs = this.#meter.costMs(sinceMs) - loopCostFreeMs
        if (costMs > 0) charge(costMs)
      },
      turn: () => {
        const nowMs = clock.monotonicMs()
        if (!this.#isCrowded(nowMs) || this.#waitMs(debtor, nowMs) === 0) return undefined
        return new Promise((start, refused) => {
          this.#enter(debtor, { request, start, refuse: isAdmin ? () => start() : refused })
        })
      },
    }
  }

  #isCrowded(nowMs: number): boolean {
    return this.#waiting > 0 || this.#budget.isAnyoneOver(nowMs)
  }

  /** Charges the client of a request, if it is charged at all, and returns the name under which it is counted. */
  #chargeClient(request: IncomingMessage, costMs: number): string {
    const { account, isCharged } = this.#options.clientOf(request)
    if (isCharged) this.#budget.charge(account, costMs, this.#options.clock.monotonicMs())
    return account
  }

  #pass(response: ServerResponse, start: () => void): void {
    const { req: request } = response
    const botId = this.#options.botIdOf(request)
    const debtor = botId === undefined ? this.#options.clientOf(request).account : debtorOf(botId)
    const refuse = (error: PostboteError): void => this.#options.refuse(response, error)
    if (this.#waitMs(debtor, this.#options.clock.monotonicMs()) === 0) start()
    else this.#enter(debtor, { request, start, refuse })
  }

  #enter(debtor: string, waiting: Waiting): void {
    const line = this.#lines.get(debtor) ?? []
    const lineMax = isKey(debtor) ? budgetWaitersPerKeyMax : budgetWaitersPerDebtorMax
    if (line.length >= lineMax || this.#waiting >= budgetWaitersMax) {
      waiting.refuse(this.#tooMany(debtor))
      return
    }
    this.#waiting += 1
    line.push({ ...waiting, sinceMs: this.#options.clock.monotonicMs() })
    if (line.length > 1) return
    this.#lines.set(debtor, line)
    this.#startLater(debtor, line)
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

  /** The cost of a request is known only after its body has arrived, so the next one waits at least `budgetSpacingMs`. */
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
    assert(this.#waiting >= 0, 'a request that waits is started once')
    const waitedMs = this.#options.clock.monotonicMs() - waiter.sinceMs
    const isLate = waitedMs > budgetWaitMsMax && !isKey(debtor)
    if (waiter.request.socket.destroyed || isLate) waiter.refuse(this.#tooMany(debtor))
    else waiter.start()
  }
}

function debtorOf(botId: number): string {
  return `bot${botId}`
}

/** Not the holder `root`, whose connections would be read later: they may have pushes. */
const adminDebtor = keyAccount('root, calls')

/** Returns who owes what the calls with a key cost that are no pushes. */
function callsDebtor(holder: string): string {
  return holder === 'root' ? adminDebtor : keyAccount(holder)
}

/** In the line of a key, connections that send a body may wait for as long as a body may take. */
function isKey(debtor: string): boolean {
  return debtor.startsWith(keyAccount(''))
}
