import type { PendingUpdate } from '../../../src/delivery/delivery-source.ts'

/** Updates as a dispatcher returns them, of which only the ids matter. */
export function pendingUpdates(updateIds: readonly number[], textBytes = 12): PendingUpdate[] {
  return updateIds.map((updateId) => ({
    updateId,
    orderingKey: 'k',
    expiresAtS: 4_000_000_000,
    textBytes,
    body: () => Buffer.alloc(0),
  }))
}
