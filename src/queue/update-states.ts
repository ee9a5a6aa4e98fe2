/** What can have become of an update that is looked at. */
export const updateStates = [
  'pending',
  'delivered',
  'confirmed',
  'dropped',
  'expired',
  'dead',
] as const

/** One of the states. */
export type UpdateState = (typeof updateStates)[number]
