/** The Piscina thread's part of taking in large updates. Their bytes lie in memory that it shares with its process. */

import { type CheckedBatch, checkBatch, type UpdateBatch } from '../src/queue/check-batch.ts'

export default function checkUpdates(batch: UpdateBatch): CheckedBatch {
  return checkBatch(batch)
}
