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

export interface StreamAccessOptions {
  readonly access: Access
  readonly ring: Pick<AccessKeyRing, 'isCurrent'>
  readonly limiter: AccessKeyLimiter
  readonly clock: Clock
}

/** A stream that the limit of its key paces has this many slices in a second. Chosen: an update waits 0.1 s longer at most. */
const pacedSlicesPerS = 10

export class StreamAccess {
  readonly #options: StreamAccessOptions
  readonly #stopping = new AbortController()

  constructor(options: StreamAccessOptions) {
    this.#options = options
  }

  /** The id of the key; undefined for the admin key. */
  get keyId(): string | undefined {
    const { access } = this.#options
    return access === 'root' ? undefined : access.id
  }

  /** Whether pairs may have to wait for the limit of the key. */
  get isPaced(): boolean {
    const { access } = this.#options
    return access !== 'root' && access.updatesPerSecond !== undefined
  }

  /** How many pairs one slice has at most. */
  get slicePairs(): number {
    const { access } = this.#options
    if (access === 'root' || access.updatesPerSecond === undefined) return streamSlicePairs
    const paced = Math.floor(access.updatesPerSecond / pacedSlicesPerS)
    return Math.max(1, Math.min(streamSlicePairs, paced))
  }

  /** Resolves when the pairs may be pushed; undefined if they may be now. */
  pace(pairs: number): Promise<void> | undefined {
    const { access, limiter, clock } = this.#options
    if (access === 'root' || access.updatesPerSecond === undefined) return undefined
    const waitMs = limiter.reserve(access, pairs)
    return waitMs === 0 ? undefined : sleep(clock, waitMs, this.#stopping.signal)
  }

  /** Ends the wait of `pace`, now and later. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Returns UNAUTHORIZED if the key has ended since the stream began. */
  refusal(): PostboteError | undefined {
    const { access, ring } = this.#options
    return ring.isCurrent(access) ? undefined : new PostboteError('UNAUTHORIZED')
  }

  /** Whether pairs for some bots are refused. */
  get isRestricted(): boolean {
    const { access } = this.#options
    return access !== 'root' && access.bots !== undefined
  }

  /** Returns KEY_LACKS_BOT if the key is not for this bot. */
  botRefusal(botId: number): PostboteError | undefined {
    return botRefusal(this.#options.access, botId)
  }
}
