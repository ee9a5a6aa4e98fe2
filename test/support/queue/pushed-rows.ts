/** Rows of updates, as the private API makes them from what it receives. */
import { checkRows } from '../../../src/queue/check/check-batch.ts'
import type { KeyHashes } from '../../../src/shard/idempotency/key-hashes.ts'
import {
  endColumn,
  rowLength,
  type RowOptions,
  uncheckedType,
  typeColumn,
  UpdateRows,
  updateStartColumn,
} from '../../../src/shard/update-rows.ts'

/** One update to push. */
export interface PushRequest extends RowOptions {
  readonly botId: number
  readonly update: Buffer
}

export const noOptions: RowOptions = {
  orderingKey: undefined,
  ttlS: undefined,
  idempotencyKey: undefined,
  isTest: false,
  isValidated: false,
}

/** Lays updates out side by side, between bytes that are none of theirs. No row is checked. */
export function uncheckedRows(updates: readonly Buffer[]): UpdateRows {
  const around = Buffer.from('{"a":"\\')
  const pieces: Buffer[] = []
  const numbers = new Int32Array(updates.length * rowLength)
  let at = 0
  for (const [nth, update] of updates.entries()) {
    at += around.length
    numbers[nth * rowLength + updateStartColumn] = at
    at += update.length
    numbers[nth * rowLength + endColumn] = at
    numbers[nth * rowLength + typeColumn] = uncheckedType
    pieces.push(around, update)
  }
  const bytes = Buffer.concat([...pieces, Buffer.from('"}}')])
  return new UpdateRows(bytes, numbers, new Float64Array(updates.length))
}

/** Returns the checked rows of these pushes. */
export function rowsOf(requests: readonly PushRequest[]): UpdateRows {
  const rows = uncheckedRows(requests.map(({ update }) => update))
  for (const [nth, request] of requests.entries()) {
    rows.bots[nth] = request.botId
    rows.setOptions(nth, request)
  }
  checkRows(rows)
  return rows
}

/** The hashes of a row with this idempotency key and text. */
export function keyHashesOf(idempotencyKey: string, text = 'text'): KeyHashes {
  const rows = UpdateRows.ofOne(Buffer.from(text), 1, { ...noOptions, idempotencyKey })
  rows.setText(0, 0, 0, text.length)
  return rows.keyHashes
}

/** The numbers of all rows. */
export function allOf(rows: UpdateRows): number[] {
  return Array.from({ length: rows.count }, (_, nth) => nth)
}

/** The verdict about an update: its type, text and key, or the message of its refusal. */
export function verdictOf(rows: UpdateRows, nth: number) {
  return (
    rows.refusalOf(nth)?.message ?? {
      typeNumber: rows.typeOf(nth),
      text: rows.textOf(nth).toString('latin1'),
      derivedKey: rows.orderingKeyOf(nth),
    }
  )
}
