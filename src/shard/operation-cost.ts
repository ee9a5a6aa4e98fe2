/**
 * Returns how much work an operation is for the event loop, with one small push as the unit: the cost of encoding its
 * records and passing them to the database. A group is limited by cost and not by the number of operations, because
 * one operation can delete a thousand records or carry half a megabyte.
 */
import { groupCostBytes } from './limits.ts'
import type { Operation } from './operations.ts'

export function operationCost(operation: Operation): number {
  const { kind } = operation
  if (kind === 'push') return costOfText(operation.text)
  if (kind === 'delete' || kind === 'removeDeadLetters') return operation.updateIds.length
  if (kind !== 'addDeadLetters') return 1
  return operation.deadLetters.reduce((cost, { text }) => cost + costOfText(text), 0)
}

function costOfText(text: Buffer): number {
  return 1 + Math.floor(text.length / groupCostBytes)
}
