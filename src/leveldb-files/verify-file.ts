/**
 * Verifies one file: the checksums of its blocks or records, and of a table also that its blocks follow each other
 * from its first byte to its last. Nothing is decoded but the index of a table, so this is as fast as its bytes can be read.
 *
 * The end of a table is its filter, its index and its footer, which every read of the table uses. LevelDB ends its process if
 * they are damaged.
 */
import { kib } from '../kit/limits.ts'
import { type FileBytes, readFileBytes } from './file-bytes.ts'
import type { FileFault, VerifyTask } from './files-part.ts'
import { judgeLevelLog } from './level-log.ts'
import { blockFaults } from './level-table.ts'

/**
 * The end of a table is in so many bytes, or the whole table is read: a table of 2 MiB, in blocks of 16 KiB and with updates of
 * 100 bytes, has a filter of 26 KB and an index of 8 KB.
 */
export const tableEndBytes = 64 * kib

/**
 * Verifies a file.
 *
 * @returns what is wrong with it, in the order in which it was found; of a table, no more than its first 1,000 faults.
 * @throws the error of the file system if the file cannot be opened.
 */
export async function verifyFile({ path, part, bytes }: VerifyTask): Promise<readonly FileFault[]> {
  if (part === 'log' || part === 'last log') {
    const file = await readFileBytes(path)
    const { faults } = judgeLevelLog(file.bytes, {
      isLast: part === 'last log',
      closedBytes: undefined,
    })
    return [...unreadable(file), ...faults.map(({ offset, reason: what }) => ({ offset, what }))]
  }
  if (part === 'end') {
    const from = Math.max(0, bytes - tableEndBytes)
    const end = await readFileBytes(path, { from })
    if (tableFaults(end, bytes, bytes).length === 0) return []
    // The end may begin before these bytes.
  }
  return tableFaults(await readFileBytes(path), bytes, 0)
}

function tableFaults(file: FileBytes, bytes: number, from: number): readonly FileFault[] {
  const faults = [...unreadable(file)]
  const { length } = file.bytes
  if (length !== bytes) {
    const what = `the table has ${length} bytes, and the MANIFEST says ${bytes}`
    faults.push({ offset: Math.min(length, bytes), what })
  }
  faults.push(...blockFaults(file.bytes, from))
  return faults.slice(0, faultsOfFileMax)
}

function unreadable(file: FileBytes): readonly FileFault[] {
  return file.unreadable.map(({ offset, length, code }) => ({
    offset,
    what: `${length} bytes cannot be read (${code})`,
  }))
}

/** Chosen: far more than anybody reads, and more than the blocks of a table of 8 MiB. */
const faultsOfFileMax = 1_000
