/** Who pays for reads of many records, and how much. */
import type { LoopPayer } from '../../http/loop-payer.ts'
import { mib } from '../../kit/limits.ts'

/** A read waits for its payer, and is charged when its records are there. */
export type LookPayer = Pick<LoopPayer, 'turn' | 'charge'>

/** Returns a payer that is charged and waits for nothing, for what cannot wait any more. */
export function withoutTurns(payer: LookPayer | undefined): LookPayer | undefined {
  return payer && { turn: () => undefined, charge: (costMs) => payer.charge(costMs) }
}

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
  const bytes = read.reduce((sum, { text }) => sum + text.length, 0)
  return recordsCostMs(read.length + others, bytes)
}

/** As `lookCostMs`, of updates that are pending, loaded or not. */
export function pendingCostMs(updates: readonly { readonly textBytes: number }[]): number {
  const bytes = updates.reduce((sum, { textBytes }) => sum + textBytes, 0)
  return recordsCostMs(updates.length, bytes)
}

function recordsCostMs(count: number, bytes: number): number {
  return count * lookedRecordCostMs + (bytes / mib) * lookedMibCostMs
}
