/**
 * Keeps the order of pipelined calls: calls to the private listener that a client sends on one connection without waiting
 * for the responses. Calls that concern the same bot are carried out in the order in which they were sent, as HTTP
 * demands of requests that change something (RFC 9112, 9.3.2). Otherwise a short request could overtake a long one,
 * because a call is forwarded only when all of its body has arrived.
 *
 *   arrived --> waiting, for the latest before it that concerns its bot --> under way --> answered
 *        +--------------- no such call is unanswered -------------------------^
 *
 * A call that names no bot (a registration, a stream) may concern any bot: it waits for all earlier calls, and all later
 * calls wait for it. Responses go out in the order of the calls, so a call waits only for the latest one before it.
 *
 * A call without an earlier unanswered one costs nothing: a line begins with the second. The bodies of waiting calls are
 * not read, and past `pipelinedWaitingMax` waiting calls nothing is read, so memory is bounded. A line ends with its
 * client's connection. Rejected: forwarding the calls over one pipelined connection. It would be faster, but if the owner
 * were lost, nobody would know which of the later calls to repeat, and in which order.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { holdReading } from './hold-reading.ts'
import { botIdOfTarget } from '../../http/target.ts'
import { responseBeingWritten } from '../../http/native-handle.ts'

export interface PipelinedCall {
  readonly response: ServerResponse
  /** Whether this call need not wait for `before`, which is under way: the process that gets both keeps their order. */
  readonly mayOverlap: (before: ServerResponse) => boolean
  readonly start: () => void
}

/** A call without a response so far. */
interface OpenCall {
  readonly nth: number
  readonly response: ServerResponse
  readonly botId: number | undefined
  readonly waiting: (() => void)[]
}

const lineOn = Symbol('call line')

interface LinedSocket extends Socket {
  [lineOn]?: PipelinedCalls | undefined
}

const waiting = new WeakSet<IncomingMessage>()

/**
 * When this many pipelined calls of a connection wait for earlier ones, nothing more is read from it. The calls that were
 * read together with them come on top, 64 KiB at a time.
 */
export const pipelinedWaitingMax = 64

export class PipelinedCalls {
  readonly #socket: LinedSocket
  readonly #latestOfBot = new Map<number, OpenCall>()
  #latestOfNoBot: OpenCall | undefined
  #latest: OpenCall | undefined
  #waitingCount = 0
  #letGo: (() => void) | undefined

  /** Returns the line of a connection that has an unfinished response; makes it for the first such call. */
  static of(socket: LinedSocket): PipelinedCalls {
    socket[lineOn] ??= new PipelinedCalls(socket)
    return socket[lineOn]
  }

  static isWaiting(request: IncomingMessage): boolean {
    return waiting.has(request)
  }

  constructor(socket: LinedSocket) {
    this.#socket = socket
    const first = responseBeingWritten(socket)
    if (first !== undefined) this.#join(first)
  }

  add(call: PipelinedCall): void {
    const { response } = call
    const before = this.#before(botIdOf(response))
    this.#join(response)
    if (before === undefined || isOverlapping(call, before)) call.start()
    else this.#wait(call, before)
  }

  #before(botId: number | undefined): OpenCall | undefined {
    if (botId === undefined) return this.#latest
    const ofBot = this.#latestOfBot.get(botId)
    const ofNone = this.#latestOfNoBot
    return (ofBot?.nth ?? -1) > (ofNone?.nth ?? -1) ? ofBot : ofNone
  }

  #join(response: ServerResponse): void {
    const nth = (this.#latest?.nth ?? 0) + 1
    const call: OpenCall = { nth, response, botId: botIdOf(response), waiting: [] }
    this.#latest = call
    if (call.botId === undefined) this.#latestOfNoBot = call
    else this.#latestOfBot.set(call.botId, call)
    response.once('finish', () => this.#leave(call))
  }

  #wait(call: PipelinedCall, before: OpenCall): void {
    const { req } = call.response
    waiting.add(req)
    this.#waitingCount += 1
    this.#hold()
    before.waiting.push(() => {
      waiting.delete(req)
      this.#waitingCount -= 1
      assert(this.#waitingCount >= 0, 'a call that waits starts once')
      if (!this.#socket.destroyed) call.start()
    })
  }

  /** The response of this call is out. */
  #leave(call: OpenCall): void {
    const { botId } = call
    if (botId === undefined) {
      if (this.#latestOfNoBot === call) this.#latestOfNoBot = undefined
    } else if (this.#latestOfBot.get(botId) === call) this.#latestOfBot.delete(botId)
    if (this.#latest === call) this.#socket[lineOn] = undefined
    for (const start of call.waiting) start()
    this.#readOn()
  }

  #hold(): void {
    if (this.#waitingCount >= pipelinedWaitingMax) this.#letGo ??= holdReading(this.#socket)
  }

  #readOn(): void {
    if (this.#waitingCount >= pipelinedWaitingMax) return
    this.#letGo?.()
    this.#letGo = undefined
  }
}

function isOverlapping({ mayOverlap }: PipelinedCall, { response }: OpenCall): boolean {
  return !waiting.has(response.req) && mayOverlap(response)
}

function botIdOf({ req }: ServerResponse): number | undefined {
  return botIdOfTarget(req.url ?? '/')
}
