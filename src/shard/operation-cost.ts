/**
 * How much work an operation is for the event loop, in small updates pushed: what its records take to encode and to
 * hand over to the database. A group has a bound of it, not of operations: one can delete a thousand records or carry
 * half a megabyte.
 */
import { groupCostBytes } from '../limits.ts'
import type { Operation } from './operations.ts'

export function operationCost(operation: Operation): number {
  const { kind } = operation
  if (kind === 'push') return costOfText(operation.text)
  if (kind === 'delete' || kind === 'unbury') return operation.updateIds.length
  if (kind !== 'bury') return 1
  return operation.letters.reduce((cost, { text }) => cost + costOfText(text), 0)
}

function costOfText(text: Buffer): number {
  return 1 + Math.floor(text.length / groupCostBytes)
}
