/**
 * The idempotency keys of one batch of pushes.
 *
 * A key is held from before its look-up until its write has ended, because the result of the look-up stays valid only
 * while every other batch that pushes the same key is visible.
 *
 * A repetition of an update that is still being written waits for that write and gets its result, within a batch as
 * well as between batches.
 */
import { PostboteError } from '../kit/errors.ts'
import { queueIdOf } from '../shard/records/record-keys.ts'
import { type HeldKey, KeyClaim } from '../shard/idempotency/idempotency-keys.ts'
import type { PushedRows } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import type { UpdateRows } from '../shard/update-rows.ts'
import type { PushOutcome } from './push-receipt.ts'

/** Rows to push, by their numbers. */
export interface RowsToPush {
  readonly rows: UpdateRows
  readonly nths: readonly number[]
}

/** A push whose result is valid only if `claim` is written. */
interface Awaited {
  readonly claim: KeyClaim
  readonly index: number
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
  readonly #holds: (HeldKey | undefined)[]
  readonly #claims = new Map<Shard, KeyClaim>()
  readonly #awaited: Awaited[] = []

  constructor(pushes: RowsToPush, targets: KeyTargets) {
    this.#pushes = pushes
    this.#targets = targets
    this.#holds = pushes.nths.map(() => undefined)
  }

  /**
   * Looks up the keys of the valid pushes whose queues are loaded. Never rejects: `check` reports a failure.
   *
   * @returns undefined if all keys are known already.
   */
  read(): Promise<unknown> | undefined {
    const shards = new Set<Shard>()
    const { rows, nths } = this.#pushes
    for (let index = 0; index < nths.length; index++) {
      const nth = nths[index] ?? 0
      if (!rows.hasIdempotencyKey(nth) || rows.typeOf(nth) < 0 || !this.#targets.isLoaded(nth)) {
        continue
      }
      const botId = rows.botOf(nth)
      const shard = this.#targets.shardOf(botId)
      const queue = queueIdOf(botId, rows.isTest(nth))
      const held = shard.idempotency.hold(queue, rows.keyHashes, nth)
      this.#holds[index] = held
      if (held.state === 'wanted') shards.add(shard)
    }
    if (shards.size === 0) return undefined
    return Promise.all(Array.from(shards, (shard) => shard.idempotency.read(shard.clock.nowMs())))
  }

  /**
   * Returns the key of the push at `index` if it is new, to be claimed when the push is accepted, otherwise the result of the
   * push. Throws STORE_UNAVAILABLE if the look-up failed.
   */
  check(index: number, shard: Shard, nowMs: number): HeldKey | PushOutcome {
    const held = this.#holds[index]
    // The bot was loaded after the look-up, or its shard was elsewhere since, where another push may have taken the key.
    if (held === undefined || held.of !== shard.idempotency) {
      throw new PostboteError('STORE_UNAVAILABLE')
    }
    const prior = shard.idempotency.priorOf(held, nowMs)
    if (prior === undefined) return held
    if (held.claim !== undefined) this.#awaited.push({ claim: held.claim, index })
    const { rows, nths } = this.#pushes
    return prior.textHash === rows.keyHashes.textHash(nths[index] ?? 0)
      ? { duplicateOf: prior.updateId }
      : new PostboteError('IDEMPOTENCY_MISMATCH')
  }

  /** Claims the key of the push at `index`, which has an id now and is written with the others of the batch in `shard`. */
  claim(shard: Shard, index: number, pushed: PushedRows, updateId: number): void {
    const held = this.#holds[index]
    if (held === undefined) return
    let claim = this.#claims.get(shard)
    if (claim === undefined) {
      claim = new KeyClaim(pushed.rows.keyHashes, pushed.acceptedAtMs)
      this.#claims.set(shard, claim)
    }
    this.#holds[index] = undefined
    shard.idempotency.claim(held, claim, this.#pushes.nths[index] ?? 0, updateId)
  }

  /** Releases the keys that the batch has not claimed. Call this after every push of the batch was checked. */
  accepted(): void {
    for (const held of this.#holds) held?.of.release(held)
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
