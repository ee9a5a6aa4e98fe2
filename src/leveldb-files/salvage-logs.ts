/**
 * Takes out of damaged logs what has to be written again: for each key that a readable batch after the first fault touches,
 * the last readable operation by sequence. LevelDB recovers some of them itself; writing the same value again is harmless,
 * and no older value can replace a newer one. A batch without its end is salvaged as far as it goes.
 */
import assert from 'node:assert/strict'
import { decodeLevelBatch, type LevelBatch, type LevelOperation } from './level-batch.ts'
import type { LevelLog } from './level-log.ts'

/** A log with its number, by which logs are ordered. Its `tail` is not damage. */
export interface NumberedLog extends LevelLog {
  readonly number: number
}

/** By key, as a latin1 string with one character for each byte. */
type Latest = Map<string, { readonly sequence: number; readonly operation: LevelOperation }>

/** Returns what is to be written again, and how many operations are lost; undefined if that cannot be determined. */
export function salvageLogs(logs: readonly NumberedLog[]): {
  readonly salvaged: readonly LevelOperation[]
  readonly operationsLost: number | undefined
} {
  const inOrder = logs.every(({ number }, nth) => number >= (logs[nth - 1]?.number ?? 0))
  assert(inOrder, 'logs are salvaged in the order of their numbers')
  const latest: Latest = new Map()
  let isAfterFault = false
  for (const log of logs) {
    const firstFault = log.faults[0]?.offset ?? Number.POSITIVE_INFINITY
    for (const { offset, isWhole, batch } of batchesOf(log)) {
      isAfterFault ||= !isWhole || offset > firstFault
      if (isAfterFault) keepLatest(latest, batch)
    }
    isAfterFault ||= log.faults.length > 0
  }
  const salvaged = [...latest.values()]
    .toSorted((left, right) => left.sequence - right.sequence)
    .map(({ operation }) => operation)
  return { salvaged, operationsLost: countLost(logs) }
}

function keepLatest(latest: Latest, batch: LevelBatch): void {
  for (const [at, operation] of batch.operations.entries()) {
    const name = operation.key.toString('latin1')
    const sequence = batch.sequence + at
    if ((latest.get(name)?.sequence ?? -1) < sequence) latest.set(name, { sequence, operation })
  }
}

/** Returns the batches of a log as far as they can be decoded. */
export function batchesOf({
  records,
}: Pick<LevelLog, 'records'>): { offset: number; isWhole: boolean; batch: LevelBatch }[] {
  return records.flatMap(({ offset, isWhole, payload }) => {
    const batch = decodeLevelBatch(payload)
    return batch === undefined ? [] : [{ offset, isWhole, batch }]
  })
}

/**
 * Sequences have no gaps, so what is missing between the first and the last readable batch was lost. A fault before
 * the first or after the last batch hides an unknown number of operations.
 */
function countLost(logs: readonly NumberedLog[]): number | undefined {
  const marks = logs.flatMap((log) => [
    ...log.faults.map(({ offset }) => ({ log: log.number, offset, batch: undefined })),
    ...batchesOf(log).map(({ offset, batch }) => ({ log: log.number, offset, batch })),
  ])
  marks.sort((left, right) => left.log - right.log || left.offset - right.offset)
  const first = marks[0]?.batch
  const last = marks.at(-1)?.batch
  if (first === undefined || last === undefined) return undefined
  const read = marks.reduce((sum, mark) => sum + (mark.batch?.operations.length ?? 0), 0)
  return last.sequence + last.count - first.sequence - read
}
