import type { OwnerView } from '../../../src/process/routes.ts'

/** Of a shard of which nothing is known, but what the test says. */
export function ownerView(known: Partial<OwnerView> = {}): OwnerView {
  return {
    learn: () => undefined,
    answered: () => undefined,
    isOnItsWay: () => false,
    ...known,
  }
}
