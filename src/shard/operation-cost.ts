import { kib } from '../kit/limits.ts'
import type { AttemptsRecord } from './records/attempts-record.ts'
import { type Operation, textBytesOf } from './operations.ts'

/**
 * Returns how much work an operation is for the event loop, with one small push as the unit: the cost of encoding its
 * records and passing them to the database. A group is limited by cost and not by the number of operations, because
 * one operation can delete a thousand records or carry half a megabyte.
 */
export function operationCost(operation: Operation): number {
  const { kind } = operation
  if (kind === 'push') return costOfText(textBytesOf(operation))
  if (kind === 'delete') return operation.updateIds.length + costOfTexts(operation.kept ?? [])
  if (kind === 'removeDeadLetters') return operation.updateIds.length
  if (kind === 'forgetKept') {
    const { runs, updateIds, shrunk } = operation
    return runs.length + updateIds.length + (shrunk?.updateIds.length ?? 0)
  }
  if (kind === 'attempts') return costOfAttempts(operation.record)
  return kind === 'addDeadLetters' ? costOfTexts(operation.deadLetters) : 1
}

/**
 * This many bytes of an update add 1 to its cost, because they are copied and summed. Chosen, not measured: with less,
 * groups of large updates become small; with more, they block longer.
 */
const groupCostBytes = 2 * kib

function costOfTexts(updates: readonly { readonly text: Buffer }[]): number {
  return updates.reduce((cost, { text }) => cost + costOfText(text.length), 0)
}

function costOfAttempts(record: AttemptsRecord | null): number {
  return costOfText(record?.texts.reduce((sum, text) => sum + text.length, 0) ?? 0)
}

function costOfText(bytes: number): number {
  return 1 + Math.floor(bytes / groupCostBytes)
}
