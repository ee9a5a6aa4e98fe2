/**
 * Calls of the private listener that a client sends one behind the other on a connection, without waiting for the
 * answers, are carried out in that order where they concern one bot: HTTP asks for it of whatever changes something
 * (RFC 9112, 9.3.2). Without this one that is quick to read would pass one that is not, since each that is sent on to
 * another worker has a connection of its own there.
 *
 *   arrived --> waiting, for the latest before it that concerns its bot --> under way --> answered
 *        +--------------- nothing such is unanswered ------------------------^
 *
 * What names no bot (a registration, a stream) may concern any: it waits for all before it, and all behind it wait for
 * it. Answers go out in the order of the calls, so the latest before it is all that a call need wait for.
 *
 * A call that has none before it never comes here, and costs nothing: a line begins with the second. Bodies of those
 * that wait are not read, and where many wait nothing is, so that they take bounded memory; a client that goes takes
 * its line with it. Rejected: to send them on over one connection, in a pipeline too. It would be quicker, but of the
 * calls behind one that was lost with its owner nobody would know which to repeat, and in which order.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { botIdOfTarget } from '../../bot-api/target.ts'
import { pipelinedWaitingMax } from '../../limits.ts'
import { answerBeingWritten } from '../connection/native-handle.ts'

export interface PipelinedCall {
  readonly response: ServerResponse
  /** Whether it need not wait for `before`, which is under way: their order is seen to where both go. */
  readonly mayOverlap: (before: ServerResponse) => boolean
  readonly start: () => void
}

/** A call that has not been answered. */
interface Place {
  readonly nth: number
  readonly response: ServerResponse
  readonly botId: number | undefined
  readonly waiting: (() => void)[]
}

const lineOn = Symbol('call line')

interface LinedSocket extends Socket {
  [lineOn]?: CallLine | undefined
}

const waiting = new WeakSet<IncomingMessage>()

export class CallLine {
  readonly #socket: LinedSocket
  readonly #latestOfBot = new Map<number, Place>()
  #latestOfNoBot: Place | undefined
  #latest: Place | undefined
  #waitingCount = 0
  #isHeld = false

  /** The one line of a connection with an answer that is not out yet. */
  static of(socket: LinedSocket): CallLine {
    socket[lineOn] ??= new CallLine(socket)
    return socket[lineOn]
  }

  static isWaiting(request: IncomingMessage): boolean {
    return waiting.has(request)
  }

  constructor(socket: LinedSocket) {
    this.#socket = socket
    const first = answerBeingWritten(socket)
    if (first !== undefined) this.#join(first)
  }

  add(call: PipelinedCall): void {
    const { response } = call
    const before = this.#before(botIdOf(response))
    this.#join(response)
    if (before === undefined || isOverlapping(call, before)) call.start()
    else this.#wait(call, before)
  }

  #before(botId: number | undefined): Place | undefined {
    if (botId === undefined) return this.#latest
    const ofBot = this.#latestOfBot.get(botId)
    const ofNone = this.#latestOfNoBot
    return (ofBot?.nth ?? -1) > (ofNone?.nth ?? -1) ? ofBot : ofNone
  }

  #join(response: ServerResponse): void {
    const nth = (this.#latest?.nth ?? 0) + 1
    const place: Place = { nth, response, botId: botIdOf(response), waiting: [] }
    this.#latest = place
    if (place.botId === undefined) this.#latestOfNoBot = place
    else this.#latestOfBot.set(place.botId, place)
    response.once('finish', () => this.#leave(place))
  }

  #wait(call: PipelinedCall, before: Place): void {
    const { req } = call.response
    waiting.add(req)
    this.#waitingCount += 1
    this.#hold()
    before.waiting.push(() => {
      waiting.delete(req)
      this.#waitingCount -= 1
      if (!this.#socket.destroyed) call.start()
    })
  }

  /** Its answer is out. */
  #leave(place: Place): void {
    const { botId } = place
    if (botId === undefined) {
      if (this.#latestOfNoBot === place) this.#latestOfNoBot = undefined
    } else if (this.#latestOfBot.get(botId) === place) this.#latestOfBot.delete(botId)
    if (this.#latest === place) this.#socket[lineOn] = undefined
    for (const start of place.waiting) start()
    this.#readOn()
  }

  #hold(): void {
    if (this.#isHeld || this.#waitingCount < pipelinedWaitingMax) return
    this.#isHeld = true
    // Whoever reads a body resumes the socket. This listener stands behind that of node:http, which does the same.
    this.#socket.on('resume', pause)
    this.#socket.pause()
  }

  #readOn(): void {
    if (!this.#isHeld || this.#waitingCount >= pipelinedWaitingMax) return
    this.#isHeld = false
    this.#socket.off('resume', pause)
    this.#socket.resume()
  }
}

function isOverlapping({ mayOverlap }: PipelinedCall, { response }: Place): boolean {
  return !waiting.has(response.req) && mayOverlap(response)
}

function botIdOf({ req }: ServerResponse): number | undefined {
  return botIdOfTarget(req.url ?? '/')
}

function pause(this: Socket): void {
  this.pause()
}
