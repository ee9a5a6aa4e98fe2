import assert from 'node:assert/strict'
import type { PendingUpdate } from '../../../src/delivery/delivery-source.ts'
import type { DeliveryState } from '../../../src/delivery/state.ts'

/** An expiry that no test reaches. */
export const far = 4_000_000_000

export function pendingUpdate(
  updateId: number,
  orderingKey: string,
  expiresAtS = far,
  textBytes = 0,
): PendingUpdate {
  return { updateId, orderingKey, expiresAtS, textBytes, body: () => Buffer.alloc(0) }
}

/** Loads pending updates into `state` until it requests no more. */
export function feed(state: DeliveryState, pending: readonly PendingUpdate[], limit = 16): number {
  let reads = 0
  for (let after = state.nextRead(); after !== undefined; after = state.nextRead()) {
    const from = after
    state.loaded(pending.filter((one) => one.updateId > from).slice(0, limit))
    reads++
    assert.ok(reads < 10_000, 'the reading comes to an end')
  }
  return reads
}
