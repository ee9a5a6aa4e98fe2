import assert from 'node:assert/strict'
import { tornSkippedIds } from '../../../src/shard/id-mark.ts'

/** Asserts that no id is missing. After a kill that left a torn end of a log, all queues of the shard skip ids. */
export function assertIdsGoOn(ids: readonly number[]): void {
  for (const [nth, id] of ids.entries()) {
    const step = id - (ids[nth - 1] ?? id - 1)
    assert(step === 1 || step > tornSkippedIds, `${id} is ${step} above the id before it`)
  }
}
