import { updateIdFirstMax, updateIdFirstMin } from '../limits.ts'
import type { QueueState } from '../store/record.ts'

/** A random id to begin a numbering with (SPEC 4). `random` gives numbers in [0, 1). */
export function randomFirstId(random: () => number): number {
  return updateIdFirstMin + Math.floor(random() * (updateIdFirstMax - updateIdFirstMin + 1))
}

/** Of a queue that was never used. */
export function freshState(random: () => number): QueueState {
  const nextId = randomFirstId(random)
  return {
    nextId,
    floor: nextId,
    liveCount: 0,
    liveBytes: 0,
    idempotencyDay: 0,
    idempotencyCount: 0,
  }
}
