/**
 * The Piscina thread's part of taking in large updates and NDJSON chunks. The bytes come in by transfer and go back
 * the same way, so that no byte is copied: the caller must own the whole ArrayBuffer.
 */

import { move, transferableSymbol, valueSymbol } from 'piscina'
import { checkBatch, type UpdateBatch } from '../src/queue/check-batch.ts'

export default function checkUpdates(batch: UpdateBatch): unknown {
  const checked = checkBatch(batch)
  const transferred = [
    checked.bytes.buffer,
    checked.typeNumbers.buffer,
    checked.textStarts.buffer,
    checked.textEnds.buffer,
  ]
  return move({ [transferableSymbol]: transferred, [valueSymbol]: checked })
}
