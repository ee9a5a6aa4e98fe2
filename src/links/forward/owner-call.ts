/**
 * One request to the worker that has a shard, from the search for that worker to the end of its response.
 *
 *   looking --> sent --> answering --> over
 *      ^ |       | |         +--> the owner or the link breaks it off: `broken`, since half a response is none
 *      | |       | +--> the owner is lost: sent once more, to its successor, if the request allows that; or `unknown`
 *      | |       +--> nobody has done anything: the worker cannot be reached, or says that it does not have the shard (421)
 *      +-|-------+
 *        +--> nobody has had the shard for too long (owner-search.ts), or the body that would be sent again is not kept: `nowhere`
 *
 * The body is kept up to a bound until the response begins, so that it can be sent to another owner. All of it is kept while there
 * is no owner: `write` returns false then.
 */
import assert from 'node:assert/strict'
import type { Clock } from '../../kit/clock.ts'
import { peerConnectWaitMs, peerRepeatDelayMs } from '../../process/limits.ts'
import { workersMax } from '../../kit/limits.ts'
import { ShardMoves } from '../owner-wait.ts'
import type { LinkCall, LinkRequest, ResponseReceiver } from '../link/link-call.ts'
import { CallGivenUp, PeerUnreachable } from '../link/owner-link.ts'
import type { LinkTo } from '../link/link-set.ts'
import type { ResponseHead } from '../link/response-head.ts'
import type { OwnerView } from '../../process/routes.ts'
import { isMisdirected, OwnerSearch } from './owner-search.ts'

export interface OwnerTarget {
  /** The place of this worker. Kept links to it lead to this process, so a request to it gets a new link. */
  readonly self?: number
  /** The request lasts, and shares its link with no other kind. */
  readonly isStream?: boolean
  /** Returns the place that has the shard now; undefined if none has it. */
  place(): number | undefined
  readonly owner: OwnerView
  /** Returns which of the successive owners of the shard has it now; undefined between two of them. */
  generation?(): number | undefined
  /** Returns how many processes in its place hung and were killed for it. */
  hangs?(): number
}

export interface OwnerRequest extends LinkRequest {
  /** A body of more bytes is not sent to another owner. */
  readonly keptBytesMax: number
  /** Whether the request may be carried out twice. */
  readonly isIdempotent: boolean
  /** The last request ended a moment ago without a result. */
  readonly isRepeat?: boolean
}

/**
 * Why there is no response, or only a part of one. `nowhere`: nobody has done anything, so the request may be repeated. `unknown`: an
 * owner may have carried it out.
 */
export type OwnerFailure = 'nowhere' | 'unknown' | 'broken'

/** Gets the response as it arrives. Nothing is called after `answered`, `ended`, `failed`, or `destroy` of the call. */
export interface OwnerAnswer
  extends Pick<ResponseReceiver, 'answered' | 'begun' | 'part' | 'ended' | 'mayWrite'> {
  failed(how: OwnerFailure, error: Error): void
}

/** What the calls of a worker share. */
export interface OwnerWays {
  readonly clock: Pick<Clock, 'after' | 'monotonicMs'>
  readonly links: {
    /** Whether this worker ends so soon that no request should look for its owner again. */
    readonly hasGivenUp: boolean
    call(to: LinkTo, request: LinkRequest, receiver: ResponseReceiver): SentCall
  }
}

type SentCall = Pick<LinkCall, 'write' | 'end' | 'resume' | 'hurry' | 'destroy'>

export class OwnerCall implements ResponseReceiver {
  readonly #ways: OwnerWays
  readonly #target: OwnerTarget
  readonly #request: OwnerRequest
  readonly #answer: OwnerAnswer
  #state: 'looking' | 'sent' | 'answering' | 'over' = 'looking'
  #search: OwnerSearch | undefined
  #call: SentCall | undefined
  /** Where it was sent last, or would have been. */
  #place: number | undefined
  /** The body so far, for another owner; undefined once it is too large, or not needed again. */
  #kept: Uint8Array[] | undefined = []
  #keptBytes = 0
  #hasEnded = false
  #isHurried = false
  /** Of the owner that has the request now, and of the first one that was lost with it. */
  #sentToGeneration: number | undefined
  #hangsWhenSent = 0
  #lost: { readonly generation: number | undefined; readonly repeatUntilMs: number } | undefined

  constructor(ways: OwnerWays, target: OwnerTarget, request: OwnerRequest, answer: OwnerAnswer) {
    this.#ways = ways
    this.#target = target
    this.#request = request
    this.#answer = answer
  }

  /** Call this once. The body may be written before. */
  start(): void {
    assert(this.#search === undefined, 'a call is started once')
    if (this.#request.isRepeat === true) this.#sendAfter(peerRepeatDelayMs)
    else this.#send()
  }

  /** Sends a part of the body. Returns false if the caller should wait for `mayWrite`. */
  write(bytes: Uint8Array): boolean {
    assert(this.#request.hasBody, 'only a request that has a body gets one')
    if (this.#state === 'over' || this.#hasEnded) return true
    this.#keptBytes += bytes.length
    if (this.#state !== 'looking') this.#keepNoMoreThanAllowed()
    this.#kept?.push(bytes)
    return this.#state !== 'looking' && this.#call?.write(bytes) === true
  }

  /** Ends the body. */
  end(): void {
    this.#hasEnded = true
    if (this.#state !== 'looking') this.#call?.end()
  }

  /** The client waits for no event any longer, and gets the response there is. The body has ended. */
  hurry(): void {
    this.#isHurried = true
    if (this.#state !== 'looking') this.#call?.hurry()
  }

  /** Continues to read after `part` returned false. */
  resume(): void {
    this.#call?.resume()
  }

  /** Gives the request up: it is cut off at the owner. */
  destroy(): void {
    if (this.#state === 'over') return
    this.#toOver()
    this.#call?.destroy()
  }

  answered(head: ResponseHead, body: string | Buffer): void {
    if (this.#state === 'over') return
    if (isMisdirected(head)) {
      const cause = new PeerUnreachable(new Error('the worker does not have the shard'))
      const isNamed = this.#search?.misdirected(head) === true
      const isElsewhere = this.#target.place() !== this.#place
      this.#lookAgain(isNamed ? new ShardMoves(cause, isElsewhere) : cause)
      return
    }
    // This throws if the answer cannot take the head; the link then calls `lost`.
    this.#answer.answered(head, body)
    this.#target.owner.answered()
    this.#toOver()
  }

  begun(head: ResponseHead): void {
    if (this.#state === 'over') return
    this.#answer.begun(head)
    this.#target.owner.answered()
    this.#state = 'answering'
    this.#kept = undefined
  }

  part(bytes: Buffer): boolean {
    return this.#state === 'over' || this.#answer.part(bytes)
  }

  ended(): void {
    if (this.#state === 'over') return
    this.#toOver()
    this.#answer.ended()
  }

  mayWrite(): void {
    if (this.#state !== 'over') this.#answer.mayWrite?.()
  }

  lost(error: Error): void {
    if (this.#state === 'over') return
    if (this.#state === 'answering') this.#fail('broken', error)
    else if (error instanceof PeerUnreachable) this.#unreached(error)
    else if (!(error instanceof CallGivenUp) && this.#mayRepeat()) {
      this.#search = undefined
      this.#state = 'looking'
      this.#sendAfter(peerRepeatDelayMs)
    } else this.#fail('unknown', error)
  }

  #sendAfter(delayMs: number): void {
    this.#ways.clock.after(delayMs, () => this.#send())
  }

  #send(): void {
    if (this.#state === 'over') return
    const { clock, links } = this.#ways
    const target = this.#target
    this.#search ??= new OwnerSearch(clock, target.owner)
    const place = target.place()
    this.#place = place
    if (place === undefined) {
      this.#unreached(new PeerUnreachable(new Error('no worker has the shard')))
      return
    }
    this.#search.asks(place)
    this.#sentToGeneration = target.generation?.()
    this.#hangsWhenSent = target.hangs?.() ?? 0
    this.#state = 'sent'
    const isStream = target.isStream === true
    // On this machine a link costs nothing, and a kept one might lead to the process that leaves the place.
    const isFresh = place === target.self || (isStream && place < workersMax)
    const { isRepeat = false } = this.#request
    const call = links.call({ place, isFresh, isStream, isRepeat }, this.#request, this)
    this.#call = call
    if (this.#request.hasBody) this.#sendBody(call)
    if (this.#isHurried) call.hurry()
  }

  #unreached(error: PeerUnreachable): void {
    const isExpected = this.#search?.unreached(error) === true
    this.#lookAgain(isExpected ? new ShardMoves(error) : error)
  }

  /** Sends what there is of the body so far. */
  #sendBody(call: SentCall): void {
    const parts = [...(this.#kept ?? [])]
    this.#keepNoMoreThanAllowed()
    const last = this.#hasEnded ? parts.pop() : undefined
    let mayWrite = true
    for (const bytes of parts) mayWrite = call.write(bytes)
    if (this.#hasEnded) call.end(last)
    else if (mayWrite) this.mayWrite()
  }

  #keepNoMoreThanAllowed(): void {
    if (this.#keptBytes > this.#request.keptBytesMax) this.#kept = undefined
  }

  /** Nobody has done anything for this attempt: asks for the owner again, which may be another one by then. */
  #lookAgain(error: Error): void {
    this.#call = undefined
    this.#state = 'looking'
    const mayLook = this.#kept !== undefined && !this.#ways.links.hasGivenUp
    if (mayLook && this.#search?.again(() => this.#send()) === true) return
    // An owner that was lost before may have carried out the request.
    this.#fail(this.#lost === undefined ? 'nowhere' : 'unknown', error)
  }

  /**
   * A lost request is repeated once, on the successor: a request that has ended two processes must not end a third. It is
   * not repeated if the owner was killed because it hung, which cost its bots half a minute: the successor would hang,
   * too. A killed process still accepts connections, and resets them, while the kernel tears it down: a repetition that
   * reached that process does not count.
   */
  #mayRepeat(): boolean {
    if (!this.#request.isIdempotent || this.#kept === undefined) return false
    if ((this.#target.hangs?.() ?? 0) !== this.#hangsWhenSent) return false
    const nowMs = this.#ways.clock.monotonicMs()
    const generation = this.#sentToGeneration
    this.#lost ??= { generation, repeatUntilMs: nowMs + peerConnectWaitMs }
    return generation === this.#lost.generation && nowMs < this.#lost.repeatUntilMs
  }

  #fail(how: OwnerFailure, error: Error): void {
    this.#toOver()
    this.#answer.failed(how, error)
  }

  #toOver(): void {
    this.#state = 'over'
    this.#kept = undefined
  }
}
