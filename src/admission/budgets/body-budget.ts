/**
 * Bounds the memory for request bodies that a worker holds and cannot use yet: those that have not arrived completely,
 * and those that wait for the response of the worker that owns their bot (forward.ts keeps them to send them again).
 *
 * Without a bound, 150 connections that stall one byte before the end of 4 MiB would hold 600 MiB. Each sender has a
 * share, so that no single one can use up everything. Each listener has its own budget: anybody can send bodies to the
 * bot API, and those must not keep out producers, which have a key.
 *
 *   reservation --hold(bytes)--> counted --hold(more)--> counted --end()--> given back
 *     |          +--> refused: nothing more is counted
 *     +-- up to `uncountedBodyBytes` nothing is counted at all
 */
import assert from 'node:assert/strict'
import type { Counters } from '../../kit/surroundings.ts'
import type { BodyReservation } from '../../http/body.ts'
import { bodyPiecesPerCharge } from '../../http/limits.ts'
import { kib } from '../../kit/limits.ts'

/** The sender of a body. */
export interface BodySender {
  /** The key under which bodies are counted. */
  readonly address: string
  /** How many bytes all senders of this address may hold together. */
  readonly shareBytesMax: number
}

/** Options of `BodyBudget`. */
export interface BodyBudgetOptions<Request> {
  /** How many bytes all senders may hold together. */
  readonly bytesMax: number
  readonly counters: Pick<Counters, 'add'>
  /** Returns the sender of a request's body; undefined if the body is counted elsewhere. */
  senderOf(request: Request): BodySender | undefined
  /** Called when the body of this request has arrived in `pieces` more pieces; never for a usual number of pieces. */
  onPieces?(request: Request, pieces: number): void
}

/** The budget of one listener. `Request` is any type that `senderOf` understands. */
export class BodyBudget<Request> {
  readonly #options: BodyBudgetOptions<Request>
  /** Has only senders that hold something now, so at most bytesMax / uncountedBodyBytes of them. */
  readonly #heldBy = new Map<string, number>()
  #held = 0

  constructor(options: BodyBudgetOptions<Request>) {
    this.#options = options
  }

  /** The number of bytes that are counted now. */
  get held(): number {
    return this.#held
  }

  /** Returns the reservation for the body of this request. It costs nothing until it holds something. */
  reservationFor(request: Request): BodyReservation {
    return new CountedReservation(this, request, this.#options)
  }

  /**
   * Counts bytes for a sender.
   *
   * @returns false, and counts nothing, if the budget or the sender's share does not have this many bytes left
   */
  take({ address, shareBytesMax }: BodySender, bytes: number): boolean {
    assert(bytes > 0, 'what is taken is counted')
    const { bytesMax, counters } = this.#options
    const before = this.#heldBy.get(address) ?? 0
    if (this.#held + bytes > bytesMax || before + bytes > shareBytesMax) {
      counters.add('bodies_refused', 1)
      return false
    }
    this.#heldBy.set(address, before + bytes)
    this.#held += bytes
    counters.add('body_bytes_held', bytes)
    return true
  }

  /** Returns bytes of a sender to the budget. */
  give({ address }: BodySender, bytes: number): void {
    const left = (this.#heldBy.get(address) ?? 0) - bytes
    assert(left >= 0, 'a sender gives back no more than it took')
    if (left > 0) this.#heldBy.set(address, left)
    else this.#heldBy.delete(address)
    this.#held -= bytes
    this.#options.counters.add('body_bytes_held', -bytes)
  }
}

/**
 * A body that holds no more than this many bytes is not counted, because its connection takes as much. Most bodies are
 * smaller.
 */
export const uncountedBodyBytes = 4 * kib

class CountedReservation<Request> implements BodyReservation {
  readonly #budget: BodyBudget<Request>
  readonly #request: Request
  readonly #options: BodyBudgetOptions<Request>
  #sender: BodySender | undefined
  #bytes = 0
  #pieces = 0

  constructor(budget: BodyBudget<Request>, request: Request, options: BodyBudgetOptions<Request>) {
    this.#budget = budget
    this.#request = request
    this.#options = options
  }

  piece(): void {
    this.#pieces += 1
    if (this.#pieces % bodyPiecesPerCharge !== 0) return
    this.#options.onPieces?.(this.#request, bodyPiecesPerCharge)
  }

  hold(bytes: number): boolean {
    if (bytes <= this.#bytes || bytes <= uncountedBodyBytes) return true
    this.#sender ??= this.#options.senderOf(this.#request)
    if (this.#sender === undefined) return true
    if (!this.#budget.take(this.#sender, bytes - this.#bytes)) return false
    this.#bytes = bytes
    return true
  }

  end(): void {
    if (this.#sender === undefined || this.#bytes === 0) return
    this.#budget.give(this.#sender, this.#bytes)
    this.#bytes = 0
  }
}
