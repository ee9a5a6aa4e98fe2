/**
 * The Piscina task that checks large updates. Their bytes are in memory that the thread shares with the worker
 * process.
 */

import { type CheckedBatch, checkBatch, type UpdateBatch } from '../src/queue/check-batch.ts'

export default function checkUpdates(batch: UpdateBatch): CheckedBatch {
  return checkBatch(batch)
}
