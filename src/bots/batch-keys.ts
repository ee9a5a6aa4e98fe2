/**
 * The idempotency keys of one batch of pushes: held from before the look-up until its write has ended, because what
 * was looked up stays true only as long as every other batch that pushes the same key can be seen.
 *
 * A repetition of an update that is still being written waits for that write and shares its fate, in the same batch
 * as between two.
 */
import { PostboteError } from '../errors.ts'
import { queueIdOf } from '../shard/keys.ts'
import { type HeldKey, KeyClaim, hash128 } from '../shard/idempotency-keys.ts'
import type { IdempotencyFact } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import type { PushRequest, PushResult } from './bot-service.ts'

/** A push whose key is new; it is claimed once the push is accepted. */
export interface NewKey {
  readonly held: HeldKey
  readonly fact: IdempotencyFact
}

export interface ClaimedKey {
  readonly key: NewKey
  readonly updateId: number
}

export type CheckedKey = NewKey | { readonly result: PushResult }

/** Its result stands only if `claim` is written. */
interface Awaited {
  readonly claim: KeyClaim
  readonly index: number
}

export interface KeyTargets {
  isLoaded(request: PushRequest): boolean
  shardOf(botId: number): Shard
}

export class BatchKeys {
  readonly #requests: readonly PushRequest[]
  readonly #targets: KeyTargets
  /** By the place of its request, until it is claimed. */
  readonly #held: (HeldKey | undefined)[] = []
  readonly #claims = new Map<Shard, KeyClaim>()
  readonly #awaited: Awaited[] = []

  constructor(requests: readonly PushRequest[], targets: KeyTargets) {
    this.#requests = requests
    this.#targets = targets
  }

  /** Looks up the keys of those requests whose queues are loaded. Never rejects: what failed shows in `check`. */
  async read(nowMs: number): Promise<void> {
    const shards = new Set<Shard>()
    for (const [index, request] of this.#requests.entries()) {
      const { botId, isTest, idempotencyKey } = request
      if (idempotencyKey === undefined || !this.#targets.isLoaded(request)) continue
      const shard = this.#targets.shardOf(botId)
      shards.add(shard)
      this.#held[index] = shard.idempotency.hold(queueIdOf(botId, isTest), idempotencyKey)
    }
    await Promise.all(Array.from(shards, (shard) => shard.idempotency.read(nowMs)))
  }

  /**
   * The result of the push at `index` where its key is taken, else what to claim once it is accepted. Throws
   * STORE_UNAVAILABLE where the key is not known.
   */
  check(
    index: number,
    push: { readonly botId: number; readonly text: Buffer; readonly nowMs: number },
  ): CheckedKey {
    const { botId, text, nowMs } = push
    const held = this.#held[index]
    // Its bot came into memory after the look-up.
    if (held === undefined) throw new PostboteError('STORE_UNAVAILABLE')
    const prior = this.#targets.shardOf(botId).idempotency.priorOf(held, nowMs)
    const textHash = hash128(text)
    if (prior === undefined) {
      return { held, fact: { keyHash: held.keyHash, textHash, acceptedAtMs: nowMs } }
    }
    if (held.claim !== undefined) this.#awaited.push({ claim: held.claim, index })
    return {
      result:
        prior.textHash === textHash
          ? { duplicateOf: prior.updateId }
          : new PostboteError('IDEMPOTENCY_MISMATCH'),
    }
  }

  /** The push at `index` has got an id, and goes to disk with all others of the batch in `shard`. */
  claim(shard: Shard, index: number, { key, updateId }: ClaimedKey): void {
    let claim = this.#claims.get(shard)
    if (claim === undefined) {
      claim = new KeyClaim()
      this.#claims.set(shard, claim)
    }
    this.#held[index] = undefined
    const { acceptedAtMs, textHash } = key.fact
    shard.idempotency.claim(key.held, { updateId, acceptedAtMs, textHash }, claim)
  }

  /** Every push of the batch was looked at: what it has not claimed it holds no longer. */
  accepted(): void {
    for (const [index, held] of this.#held.entries()) {
      const botId = this.#requests[index]?.botId
      if (held === undefined || botId === undefined) continue
      this.#targets.shardOf(botId).idempotency.release(held)
    }
  }

  /** The write of the batch in `shard` has ended. */
  settle(shard: Shard, failure?: PostboteError): void {
    const claim = this.#claims.get(shard)
    if (claim !== undefined) shard.idempotency.settle(claim, failure)
  }

  /** Sets the failures of those pushes that repeat one whose write has failed. */
  async shareFates(results: PushResult[]): Promise<void> {
    for (const { claim, index } of this.#awaited) {
      const failure = await claim.settled
      if (failure !== undefined) results[index] = failure
    }
  }
}
