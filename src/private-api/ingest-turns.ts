/**
 * Whose pairs go on their way next, among all NDJSON streams of a worker.
 *
 * Two bounds, both by weight (bytes, and what a pair costs besides): what one turn of the event loop takes, so that
 * polls and webhooks get theirs; and what waits for its result in all, so that memory is bounded and a new pair does not
 * stand behind those of sixty other streams. Within them the slice is next that ends first on a
 * common time scale (self-clocked fair queueing): a stream's slices stand one behind the other on it, each as long as it
 * weighs, and who was idle begins at the present. So the pair of a trickle passes streams that have thousands ready.
 *
 * A stream with nothing under way is held back by its turn only, never by the sum: streams of two workers that wait for
 * each other's results would wait for ever otherwise. So the sum may be passed by one slice of each stream.
 */
import type { Clock } from '../clock.ts'
import { streamsTurnWeight, streamsWeightMax } from '../limits.ts'

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

export class IngestTurns {
  readonly #clock: Pick<Clock, 'soon'>
  readonly #weightMax: number
  readonly #turnWeight: number
  /** Longest waiting first. */
  readonly #waiting: Waiter[] = []
  /** On the common time scale: the end of the slice that was last served. */
  #virtualNow = 0
  #weight = 0
  #weightThisTurn = 0

  constructor({ clock, weightMax, turnWeight }: IngestTurnsOptions) {
    this.#clock = clock
    this.#weightMax = weightMax ?? streamsWeightMax
    this.#turnWeight = turnWeight ?? streamsTurnWeight
  }

  /** One stream's part. */
  share(): IngestShare {
    return new IngestShare(this)
  }

  /** What waits for results in all streams. */
  get weight(): number {
    return this.#weight
  }

  /** Undefined where the pairs may go at once. Only for a share, and one at a time for each. */
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

  /** What waits for its results. */
  get weight(): number {
    return this.#weight
  }

  get servedUpTo(): number {
    return this.#servedUpTo
  }

  /** Resolves when pairs of this weight may go on their way; undefined where they may at once. */
  take(weight: number): Promise<void> | undefined {
    return this.#turns.take(this, weight)
  }

  /** Their results are written. */
  give(weight: number): void {
    this.#weight -= weight
    this.#turns.give(weight)
  }

  /** Called by the turns. */
  served(endsAt: number, weight: number): void {
    this.#servedUpTo = endsAt
    this.#weight += weight
  }
}
