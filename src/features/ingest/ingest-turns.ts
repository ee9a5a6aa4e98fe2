/**
 * Decides which of a worker's NDJSON streams processes its pairs next.
 *
 * There are two bounds, both by weight: the bytes of the pairs and a fixed cost for each. One bounds the pairs of one
 * turn of the event loop, so that polls and webhooks get their share. The other bounds the pairs of all streams that
 * wait for their results, so that memory is bounded and a new pair does not wait for those of sixty other streams.
 * Within the bounds, the slice that ends first on a common time scale is next (self-clocked fair queueing). The
 * slices of a stream follow each other on that scale, each as long as its weight, and a stream that was idle starts at
 * the present. A slow stream's pair therefore passes streams that have thousands ready.
 *
 * The bound of the sum does not apply to a stream that has no pairs waiting for results. Otherwise, streams of two workers
 * that wait for each other's results would wait forever. The sum may therefore be exceeded by one slice of each stream.
 */
import type { Clock } from '../../kit/clock.ts'
import { kib, mib } from '../../kit/limits.ts'

export interface IngestTurnsOptions {
  readonly clock: Pick<Clock, 'soon'>
  readonly weightMax?: number
  readonly turnWeight?: number
}

interface Waiter {
  readonly share: IngestShare
  readonly endsAt: number
  readonly weight: number
  readonly go: () => void
}

/** The pairs of all streams of a worker that wait for results may have this weight: about 10,000 pairs of 300 bytes. */
const streamsWeightMax = 8 * mib
/**
 * One turn of the event loop handles pairs of this weight from all streams together: 600 pairs of 300 bytes, which take 5
 * ms.
 */
const streamsTurnWeight = 512 * kib

export class IngestTurns {
  readonly #clock: Pick<Clock, 'soon'>
  readonly #weightMax: number
  readonly #turnWeight: number
  /** In order of arrival. */
  readonly #waiting: Waiter[] = []
  /** The present on the common time scale: the end of the slice that was served last. */
  #virtualNow = 0
  #weight = 0
  #weightThisTurn = 0

  constructor({ clock, weightMax, turnWeight }: IngestTurnsOptions) {
    this.#clock = clock
    this.#weightMax = weightMax ?? streamsWeightMax
    this.#turnWeight = turnWeight ?? streamsTurnWeight
  }

  /** Returns the share of one stream. */
  share(): IngestShare {
    return new IngestShare(this)
  }

  /** Weight of the pairs of all streams that wait for their results. */
  get weight(): number {
    return this.#weight
  }

  /** Returns undefined if the pairs may be processed immediately. Only a share calls this, once at a time. */
  take(share: IngestShare, weight: number): Promise<void> | undefined {
    const endsAt = Math.max(this.#virtualNow, share.servedUpTo) + weight
    if (this.#waiting.length === 0 && this.#isTurnLeft && this.#hasRoom(share)) {
      this.#serve({ share, endsAt, weight })
      return undefined
    }
    const served = new Promise<void>((go) => {
      this.#waiting.push({ share, endsAt, weight, go })
    })
    this.#serveWaiting()
    return served
  }

  give(weight: number): void {
    this.#weight -= weight
    this.#serveWaiting()
  }

  get #isTurnLeft(): boolean {
    return this.#weightThisTurn < this.#turnWeight
  }

  #hasRoom(share: IngestShare): boolean {
    return this.#weight < this.#weightMax || share.weight === 0
  }

  #serveWaiting(): void {
    while (this.#isTurnLeft) {
      const next = this.#next()
      if (next === undefined) return
      this.#waiting.splice(this.#waiting.indexOf(next), 1)
      this.#serve(next)
      next.go()
    }
  }

  #next(): Waiter | undefined {
    let first: Waiter | undefined
    for (const waiter of this.#waiting) {
      if (first !== undefined && waiter.endsAt >= first.endsAt) continue
      if (this.#hasRoom(waiter.share)) first = waiter
    }
    return first
  }

  #serve({ share, endsAt, weight }: Omit<Waiter, 'go'>): void {
    if (this.#weightThisTurn === 0) {
      this.#clock.soon(() => {
        this.#weightThisTurn = 0
        this.#serveWaiting()
      })
    }
    this.#virtualNow = Math.max(this.#virtualNow, endsAt)
    this.#weightThisTurn += weight
    this.#weight += weight
    share.served(endsAt, weight)
  }
}

/** What one stream has taken. */
export class IngestShare {
  readonly #turns: IngestTurns
  #weight = 0
  #servedUpTo = 0

  constructor(turns: IngestTurns) {
    this.#turns = turns
  }

  /** Weight of the pairs that wait for their results. */
  get weight(): number {
    return this.#weight
  }

  get servedUpTo(): number {
    return this.#servedUpTo
  }

  /** Resolves when pairs of this weight may be processed; undefined if they may be immediately. */
  take(weight: number): Promise<void> | undefined {
    return this.#turns.take(this, weight)
  }

  /** Returns the weight of pairs whose results are written. */
  give(weight: number): void {
    this.#weight -= weight
    this.#turns.give(weight)
  }

  /** Called by IngestTurns. */
  served(endsAt: number, weight: number): void {
    this.#servedUpTo = endsAt
    this.#weight += weight
  }
}
