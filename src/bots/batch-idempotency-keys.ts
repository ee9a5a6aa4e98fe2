/**
 * The idempotency keys of one batch of pushes.
 *
 * A key is held from before its look-up until its write has ended, because the result of the look-up stays valid only
 * while every other batch that pushes the same key is visible.
 *
 * A repetition of an update that is still being written waits for that write and gets its result, within a batch as
 * well as between batches.
 */
import { PostboteError } from '../errors.ts'
import { queueIdOf } from '../shard/record-keys.ts'
import { type HeldKey, KeyClaim, hash128 } from '../shard/idempotency-keys.ts'
import type { IdempotencyFact } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import type { UpdateRows } from '../shard/update-rows.ts'
import type { PushOutcome } from './bot-service.ts'

/** Rows to push, by their numbers. */
export interface RowsToPush {
  readonly rows: UpdateRows
  readonly nths: readonly number[]
}

/** A push with a new key. The key is claimed when the push is accepted. */
export interface NewKey {
  readonly held: HeldKey
  readonly fact: IdempotencyFact
}

export interface ClaimedKey {
  readonly key: NewKey
  readonly updateId: number
}

export type CheckedKey = NewKey | { readonly result: PushOutcome }

/** A push whose result is valid only if `claim` is written. */
interface Awaited {
  readonly claim: KeyClaim
  readonly index: number
}

interface Hold {
  readonly held: HeldKey
  /** As it was when the key was looked up. */
  readonly shard: Shard
}

export interface KeyTargets {
  /** Whether the queue of a row is loaded. */
  isLoaded(nth: number): boolean
  shardOf(botId: number): Shard
}

export class BatchIdempotencyKeys {
  readonly #pushes: RowsToPush
  readonly #targets: KeyTargets
  /** Indexed as the pushes; undefined once the key is claimed. */
  readonly #holds: (Hold | undefined)[] = []
  readonly #claims = new Map<Shard, KeyClaim>()
  readonly #awaited: Awaited[] = []

  constructor(pushes: RowsToPush, targets: KeyTargets) {
    this.#pushes = pushes
    this.#targets = targets
  }

  /**
   * Looks up the keys of the pushes whose queues are loaded. Never rejects: `check` reports a failure.
   *
   * @returns undefined if all keys are known already.
   */
  read(): Promise<unknown> | undefined {
    const shards = new Set<Shard>()
    const { rows, nths } = this.#pushes
    for (const [index, nth] of nths.entries()) {
      const idempotencyKey = rows.idempotencyKeyOf(nth)
      if (idempotencyKey === undefined || !this.#targets.isLoaded(nth)) continue
      const botId = rows.botOf(nth)
      const shard = this.#targets.shardOf(botId)
      const held = shard.idempotency.hold(queueIdOf(botId, rows.isTest(nth)), idempotencyKey)
      this.#holds[index] = { held, shard }
      if (held.state === 'wanted') shards.add(shard)
    }
    if (shards.size === 0) return undefined
    return Promise.all(Array.from(shards, (shard) => shard.idempotency.read(shard.clock.nowMs())))
  }

  /**
   * Returns the result of the push at `index` if its key is taken, otherwise the key to claim when the push is
   * accepted. Throws STORE_UNAVAILABLE if the look-up failed.
   */
  check(
    index: number,
    push: { readonly botId: number; readonly text: Buffer; readonly nowMs: number },
  ): CheckedKey {
    const { botId, text, nowMs } = push
    const { held, shard } = this.#holds[index] ?? {}
    // The bot was loaded after the look-up, or its shard was elsewhere since, where another push may have taken the key.
    if (held === undefined || shard !== this.#targets.shardOf(botId)) {
      throw new PostboteError('STORE_UNAVAILABLE')
    }
    const prior = shard.idempotency.priorOf(held, nowMs)
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

  /** Claims the key of the push at `index`, which has an id now and is written with the others of the batch in `shard`. */
  claim(shard: Shard, index: number, { key, updateId }: ClaimedKey): void {
    let claim = this.#claims.get(shard)
    if (claim === undefined) {
      claim = new KeyClaim()
      this.#claims.set(shard, claim)
    }
    this.#holds[index] = undefined
    const { acceptedAtMs, textHash } = key.fact
    shard.idempotency.claim(key.held, { updateId, acceptedAtMs, textHash }, claim)
  }

  /** Releases the keys that the batch has not claimed. Call this after every push of the batch was checked. */
  accepted(): void {
    for (const hold of this.#holds) hold?.shard.idempotency.release(hold.held)
  }

  /** Settles the claims in `shard` after the write of the batch has ended. */
  settle(shard: Shard, failure?: PostboteError): void {
    const claim = this.#claims.get(shard)
    if (claim !== undefined) shard.idempotency.settle(claim, failure)
  }

  /** Copies the failure of a write to the pushes that repeat one of its updates. */
  async copyFailures(results: PushOutcome[]): Promise<void> {
    for (const { claim, index } of this.#awaited) {
      const failure = await claim.settled
      if (failure !== undefined) results[index] = failure
    }
  }
}
