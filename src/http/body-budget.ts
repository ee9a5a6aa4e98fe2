/**
 * How much memory the request bodies may take that a worker holds and cannot use yet: those that have not arrived whole,
 * and those that wait for the answer of the worker that owns their bot (forward.ts keeps them to send them again).
 *
 * Without a bound, 150 connections that stall one byte before the end of 4 MiB would hold 600 MiB. Each sender has a
 * share, so that no single one can use up everything. Each listener has a budget of its own: bodies that anybody can
 * send to the bot API must not keep producers out, who have the admin key.
 *
 *   lease --hold(bytes)--> counted --hold(more)--> counted --end()--> given back
 *     |          +--> refused: nothing more is counted
 *     +-- up to `uncountedBodyBytes` nothing is counted at all
 */
import type { Counters } from '../counters.ts'
import { PostboteError } from '../errors.ts'
import { bodyPiecesChargedAtOnce, bodyRetryAfterS, uncountedBodyBytes } from '../limits.ts'

/** Who sends a body. */
export interface BodySender {
  readonly address: string
  /** What all senders of this address may hold together. */
  readonly shareBytesMax: number
}

export interface BodyBudgetOptions<Request> {
  /** What all senders may hold together. */
  readonly bytesMax: number
  readonly counters: Counters
  /** Undefined where the body is counted elsewhere. */
  senderOf(request: Request): BodySender | undefined
  /** The body of this request has come in so many pieces more. Not called for bodies of a usual number of pieces. */
  onPieces?(request: Request, pieces: number): void
}

/** The part of the budget that one body has. */
export interface BodyLease {
  /**
   * Counts `bytes` in place of what was counted for this body before, unless that was more.
   *
   * @returns false where the budget or the sender's share is used up; what was counted before stays counted
   */
  hold(bytes: number): boolean
  /** Another piece of the body has arrived that is not all of it. */
  piece(): void
  /** Gives everything back. May be called again. */
  end(): void
}

export class BodyBudget<Request> {
  readonly #options: BodyBudgetOptions<Request>
  /** Only of senders that hold something now, so there are at most bytesMax / uncountedBodyBytes. */
  readonly #heldBy = new Map<string, number>()
  #held = 0

  constructor(options: BodyBudgetOptions<Request>) {
    this.#options = options
  }

  /** Bytes that are counted now. */
  get held(): number {
    return this.#held
  }

  /** For the body of this request. Costs nothing until it holds something. */
  leaseFor(request: Request): BodyLease {
    return new CountedLease(this, {
      findSender: () => this.#options.senderOf(request),
      onPieces: () => this.#options.onPieces?.(request, bodyPiecesChargedAtOnce),
    })
  }

  take({ address, shareBytesMax }: BodySender, bytes: number): boolean {
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

  give({ address }: BodySender, bytes: number): void {
    const left = (this.#heldBy.get(address) ?? 0) - bytes
    if (left > 0) this.#heldBy.set(address, left)
    else this.#heldBy.delete(address)
    this.#held -= bytes
    this.#options.counters.add('body_bytes_held', -bytes)
  }
}

/** What a request is answered with whose body finds no room. */
export function tooManyBodies(): PostboteError {
  return new PostboteError('TOO_MANY_BODIES', { retryAfterS: bodyRetryAfterS })
}

interface LeasedBody {
  findSender(): BodySender | undefined
  onPieces(): void
}

class CountedLease<Request> implements BodyLease {
  readonly #budget: BodyBudget<Request>
  readonly #body: LeasedBody
  #sender: BodySender | undefined
  #bytes = 0
  #pieces = 0

  constructor(budget: BodyBudget<Request>, body: LeasedBody) {
    this.#budget = budget
    this.#body = body
  }

  piece(): void {
    this.#pieces += 1
    if (this.#pieces % bodyPiecesChargedAtOnce === 0) this.#body.onPieces()
  }

  hold(bytes: number): boolean {
    if (bytes <= this.#bytes || bytes <= uncountedBodyBytes) return true
    this.#sender ??= this.#body.findSender()
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
