/**
 * Shares the event loop between the keys of the private API. Node parses 64 KiB of a connection at a time, hundreds of
 * pipelined calls, and 40 connections of one key took a worker for a second.
 *
 *     call of a key --> begins at once
 *          |               64 pipelined calls of the key have begun in this turn, or it is over its budget of event-loop time
 *          +-------------> waits, its connection is not read --> begins in a later turn
 *
 * The calls of one connection begin in their order, and connections of a key take turns. A line is that of a key and not
 * of a connection, so more connections do not bring more. A call that is not pipelined waits only for the budget of its key.
 *
 * Parsing takes as long as most calls do, and all that is read at once is parsed in one turn. So when no call of a key waits
 * any more, its connections are read again one after the other, and a key has half of the places for waiting calls.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import { holdReading } from '../connections/hold-reading.ts'
import { unwatchClose, watchClose } from '../../http/once-closed.ts'
import { Fifo } from '../../kit/fifo.ts'
import { pipelinedPerTurnMax } from '../../http/limits.ts'

type Start = (request: IncomingMessage, response: ServerResponse) => void

const waitingOn = Symbol('waiting calls')

/** The waiting calls of a connection, and the line in which all of them wait and are counted, whatever keys they have. */
interface Held {
  readonly calls: Fifo<ServerResponse>
  readonly line: WaitingLine
  closed(): void
}

interface WaitingSocket extends Socket {
  [waitingOn]?: Held | undefined
}

/** The connections of one key that have waiting calls, those whose calls have begun, and what the key has begun in this turn. */
interface WaitingLine {
  readonly connections: Fifo<WaitingSocket>
  readonly unread: Fifo<() => void>
  begun: number
  waiting: number
}

/**
 * This many calls with a key wait in a worker for a later turn, at some 16 kB each. A connection brings up to 600, as it is
 * not read while calls of it wait; past the bound calls are refused.
 */
export const callsWaitingMax = 16_384
/** A key may have this share of them. Chosen: 13 connections that pipeline as much as they can; the rest is for other keys. */
export const callsWaitingKeyShare = 1 / 2

export class CallTurns {
  readonly #clock: Clock
  readonly #waitMsOf: (holder: string) => number
  readonly #start: Start
  readonly #lines = new Map<string, WaitingLine>()
  readonly #letGo = new WeakMap<Socket, () => void>()
  #waiting = 0

  /** @param waitMsOf - returns how long the calls of this holder of a key must wait, in milliseconds */
  constructor(clock: Clock, waitMsOf: (holder: string) => number, start: Start) {
    this.#clock = clock
    this.#waitMsOf = waitMsOf
    this.#start = start
  }

  /** Begins a call of this holder of a key, now or later. Returns false if too many calls wait. */
  enter(holder: string, response: ServerResponse): boolean {
    const { req: request } = response
    const socket: WaitingSocket = request.socket
    const before = socket[waitingOn]
    const waitMs = before === undefined ? this.#waitMsOf(holder) : 0
    // A response without the socket waits for earlier ones.
    const isPipelined = response.socket === null
    if (before === undefined && waitMs === 0 && (!isPipelined || this.#mayBegin(holder))) {
      this.#start(request, response)
      return true
    }
    const line = before?.line ?? this.#lineOf(holder, waitMs)
    const isFull = line.waiting >= callsWaitingMax * callsWaitingKeyShare
    if (isFull || this.#waiting >= callsWaitingMax) return false
    this.#count(line, 1)
    const held = before ?? this.#hold(line, socket)
    held.calls.push(response)
    return true
  }

  #count(line: WaitingLine, calls: 1 | -1): void {
    this.#waiting += calls
    line.waiting += calls
    assert(line.waiting >= 0 && this.#waiting >= line.waiting, 'a call that waits is counted once')
  }

  /** Counts a pipelined call, if it may begin in this turn. */
  #mayBegin(holder: string): boolean {
    const line = this.#lineOf(holder, 0)
    if (line.begun >= pipelinedPerTurnMax) return false
    line.begun += 1
    return true
  }

  #lineOf(holder: string, waitMs: number): WaitingLine {
    const known = this.#lines.get(holder)
    if (known !== undefined) return known
    const line: WaitingLine = { connections: new Fifo(), unread: new Fifo(), begun: 0, waiting: 0 }
    this.#lines.set(holder, line)
    this.#later(holder, line, waitMs)
    return line
  }

  #hold(line: WaitingLine, socket: WaitingSocket): Held {
    const calls = new Fifo<ServerResponse>()
    const closed = (): void => {
      while (calls.shift() !== undefined) this.#count(line, -1)
    }
    const held = { calls, line, closed }
    socket[waitingOn] = held
    this.#letGo.set(socket, holdReading(socket))
    line.connections.push(socket)
    watchClose(socket, held)
    return held
  }

  #later(holder: string, line: WaitingLine, waitMs: number): void {
    const turn = (): void => this.#turn(holder, line)
    if (waitMs === 0) this.#clock.soon(turn)
    else this.#clock.after(waitMs, turn)
  }

  #turn(holder: string, line: WaitingLine): void {
    const { connections, unread } = line
    if (connections.length === 0) {
      const readOn = unread.shift()
      if (readOn === undefined) this.#lines.delete(holder)
      else {
        line.begun = 0
        readOn()
        this.#later(holder, line, 0)
      }
      return
    }
    const waitMs = this.#waitMsOf(holder)
    line.begun = 0
    const beginsMax = waitMs === 0 ? pipelinedPerTurnMax : 0
    while (line.begun < beginsMax) {
      const socket = connections.shift()
      if (socket === undefined) break
      line.begun += this.#begin(line, socket)
      if (socket[waitingOn] !== undefined) connections.push(socket)
    }
    this.#later(holder, line, waitMs)
  }

  /** Begins the next call of a connection, and returns how many it has begun: 0 if its client is gone. */
  #begin(line: WaitingLine, socket: WaitingSocket): number {
    const held = socket[waitingOn]
    const response = held?.calls.shift()
    if (response !== undefined) {
      this.#count(line, -1)
      this.#start(response.req, response)
    }
    if (held === undefined || held.calls.length === 0) {
      if (held !== undefined) unwatchClose(socket, held)
      socket[waitingOn] = undefined
      const letGo = this.#letGo.get(socket)
      if (letGo !== undefined) line.unread.push(letGo)
    }
    return response === undefined ? 0 : 1
  }
}
