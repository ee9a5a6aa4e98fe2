/**
 * What becomes of the types of updates in records that go to another server: it has other numbers for them, and derives ordering
 * keys with other letters.
 */
import { maskOfNumbers, numbersIn } from '../../kit/update-types.ts'
import type { QueueSettings } from './bot-record.ts'
import type { ReplayRecord } from './replay-record.ts'

export interface TypeMoves {
  numberOf(before: number): number
  orderingKeyOf(before: string): string
}

export function movedUpdate<
  Update extends { readonly typeNumber: number; readonly orderingKey: string },
>(update: Update, moves: TypeMoves): Update {
  const typeNumber = moves.numberOf(update.typeNumber)
  return { ...update, typeNumber, orderingKey: moves.orderingKeyOf(update.orderingKey) }
}

export function movedSettings(settings: QueueSettings, moves: TypeMoves): QueueSettings {
  const { allowedTypes } = settings
  if (allowedTypes === undefined) return settings
  const numbers = numbersIn(allowedTypes).map((before) => moves.numberOf(before))
  return { ...settings, allowedTypes: maskOfNumbers(numbers) }
}

export function movedReplay(replay: ReplayRecord, moves: TypeMoves): ReplayRecord {
  const { selection } = replay
  if (selection.typeNumber === undefined) return replay
  const typeNumber = moves.numberOf(selection.typeNumber)
  return { ...replay, selection: { ...selection, typeNumber } }
}
