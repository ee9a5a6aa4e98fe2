/**
 * What the key of one NDJSON stream means for its pairs. A stream lasts for days, so the key is checked again for each
 * slice, and the bots of a key for each pair.
 *
 * A key with a limit of updates paces its streams: the next slice is read when the key may push it. Slices are small then,
 * so that the pairs are spread over the time. A stream that this worker ends meanwhile is not paced any more, because the
 * pairs that were read need their results; they are counted, and what the key does next waits for them. If the producer is
 * gone, nobody waits for results, and the pairs are dropped: otherwise a producer could evade its limit by disconnecting.
 */
import { type Access, botRefusal } from '../../api/access.ts'
import type { AccessKeyLimiter } from '../../admission/access-key-limiter.ts'
import type { AccessKeyRing } from '../../access/access-key-ring.ts'
import { type Clock, sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { streamSlicePairs } from './pair-splitter.ts'

/** A stream that the limit of its key paces has this many slices in a second. Chosen: an update waits 0.1 s longer at most. */
const pacedSlicesPerS = 10

export class StreamAccess {
  readonly #access: Access
  readonly #ring: Pick<AccessKeyRing, 'isCurrent'>
  readonly #limiter: AccessKeyLimiter
  readonly #clock: Clock
  readonly #stopping = new AbortController()

  constructor(
    access: Access,
    ring: Pick<AccessKeyRing, 'isCurrent'>,
    limiter: AccessKeyLimiter,
    clock: Clock,
  ) {
    this.#access = access
    this.#ring = ring
    this.#limiter = limiter
    this.#clock = clock
  }

  /** The id of the key; undefined for the admin key. */
  get keyId(): string | undefined {
    return this.#access === 'root' ? undefined : this.#access.id
  }

  /** Whether pairs may have to wait for the limit of the key. */
  get isPaced(): boolean {
    return this.#access !== 'root' && this.#access.updatesPerSecond !== undefined
  }

  /** How many pairs one slice has at most. */
  get slicePairs(): number {
    if (this.#access === 'root' || this.#access.updatesPerSecond === undefined)
      return streamSlicePairs
    const paced = Math.floor(this.#access.updatesPerSecond / pacedSlicesPerS)
    return Math.max(1, Math.min(streamSlicePairs, paced))
  }

  /** Resolves when the pairs may be pushed; undefined if they may be now. */
  pace(pairs: number): Promise<void> | undefined {
    if (this.#access === 'root' || this.#access.updatesPerSecond === undefined) return undefined
    const waitMs = this.#limiter.reserve(this.#access, pairs)
    return waitMs === 0 ? undefined : sleep(this.#clock, waitMs, this.#stopping.signal)
  }

  /** Ends the wait of `pace`, now and later. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Returns UNAUTHORIZED if the key has ended since the stream began. */
  refusal(): PostboteError | undefined {
    return this.#ring.isCurrent(this.#access) ? undefined : new PostboteError('UNAUTHORIZED')
  }

  /** Whether pairs for some bots are refused. */
  get isRestricted(): boolean {
    return this.#access !== 'root' && this.#access.bots !== undefined
  }

  /** Returns KEY_LACKS_BOT if the key is not for this bot. */
  botRefusal(botId: number): PostboteError | undefined {
    return botRefusal(this.#access, botId)
  }
}
