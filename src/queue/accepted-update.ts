import type { IdempotencyFact } from '../shard/operations.ts'

/** A checked update that is about to be pushed. */
export interface AcceptedUpdate {
  readonly typeNumber: number
  readonly orderingKey: string
  /** Wall time in seconds. */
  readonly expiresAtS: number
  readonly text: Buffer
  readonly idempotency?: IdempotencyFact | undefined
}
