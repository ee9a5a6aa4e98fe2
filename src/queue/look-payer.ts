/** Who pays for reads of many records, and how much. */
import type { LoopPayer } from '../http/loop-payer.ts'
import { mib } from '../limits.ts'

/** A read waits for its payer, and is charged when its records are there. */
export type LookPayer = Pick<LoopPayer, 'turn' | 'charge'>

/** A read is charged this much for each of its records: measured, with what its caller does with them. */
export const lookedRecordCostMs = 0.008
/** Further, a read is charged this much for each MiB of texts: measured. */
const lookedMibCostMs = 0.5

/**
 * Returns what a read costs the event loop, in milliseconds. It takes several turns, so it is not measured.
 *
 * @param read - the records that have texts
 * @param others - how many others there are
 */
export function lookCostMs(read: readonly { readonly text: Buffer }[], others = 0): number {
  let bytes = 0
  for (const { text } of read) bytes += text.length
  return (read.length + others) * lookedRecordCostMs + (bytes / mib) * lookedMibCostMs
}
