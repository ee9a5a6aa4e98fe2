/**
 * Splits a whole stream into pairs of lines in plain JavaScript: the reference that the native code, and what gathers pairs that
 * span chunks, are compared with.
 */
import { pairHeaderBytesMax } from '../../../src/api/limits.ts'
import {
  endColumn,
  flagsColumn,
  headerEndColumn,
  headerTooLargeFlag,
  rowLength,
  startColumn,
  typeColumn,
  uncheckedType,
  UpdateRows,
  updateStartColumn,
  updateTooLargeFlag,
} from '../../../src/shard/update-rows.ts'

interface Line {
  readonly start: number
  readonly end: number
}

/** Returns the rows of the pairs. No header is read. */
export function plainPairs(stream: Buffer, updateLineBytesMax: number): UpdateRows {
  const numbers: number[] = []
  let header: Line | undefined
  for (const line of linesOf(stream)) {
    if (header === undefined) {
      if (line.end > line.start) header = line
      continue
    }
    const row = Array.from({ length: rowLength }, () => 0)
    row[startColumn] = header.start
    row[headerEndColumn] = header.end
    row[updateStartColumn] = line.start
    row[endColumn] = line.end
    row[typeColumn] = uncheckedType
    if (header.end - header.start > pairHeaderBytesMax) row[flagsColumn] = headerTooLargeFlag
    else if (line.end - line.start > updateLineBytesMax) row[flagsColumn] = updateTooLargeFlag
    numbers.push(...row)
    header = undefined
  }
  const bots = new Float64Array(numbers.length / rowLength).fill(Number.NaN)
  return new UpdateRows(stream, Int32Array.from(numbers), bots)
}

/** A last line needs no end, unless it is empty. */
function linesOf(stream: Buffer): Line[] {
  const lines: Line[] = []
  let start = stream.toString('latin1', 0, 3) === '\u00ef\u00bb\u00bf' ? 3 : 0
  while (start < stream.length) {
    const found = stream.indexOf('\n', start)
    const feed = found < 0 ? stream.length : found
    const hasReturn = feed > start && stream[feed - 1] === 0x0d
    lines.push({ start, end: hasReturn ? feed - 1 : feed })
    start = feed + 1
  }
  return lines
}
