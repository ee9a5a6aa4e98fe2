/**
 * The Piscina task that checks large updates. Their bytes are in memory that the thread shares with the worker
 * process.
 */

import { workerData } from 'node:worker_threads'
import type { AddedType } from '../src/kit/added-type.ts'
import { type CheckedBatch, checkBatch, type UpdateBatch } from '../src/queue/check/check-batch.ts'
import { setAddedTypes } from '../src/kit/update-types.ts'

// check-pool.ts has given them.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
setAddedTypes(workerData as readonly AddedType[])

export default function checkUpdates(batch: UpdateBatch): CheckedBatch {
  return checkBatch(batch)
}
