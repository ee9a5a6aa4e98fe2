/**
 * Takes what was deleted or overwritten out of the tables of a LevelDB. A compaction leaves it behind wherever LevelDB does not have
 * to rewrite a table: compactRange moves tables down to the last level that has some, and does not touch those that are there, not
 * even one that holds both an entry and its deletion.
 *
 *     wait      until no read is in progress that sees what was deleted: a compaction keeps what a snapshot sees
 *     flush     everything is in tables
 *     mark      a deletion inside each table, so that a table above overlaps it
 *     compact   the marks move down to the tables, which are rewritten: files with their numbers are gone
 *     flush     deletes the files that reads have held meanwhile
 *
 * A table that LevelDB itself moves to another level at the same moment keeps its number, or is then on another level than
 * those beside it: it is marked again.
 */
import {
  keysOfTable,
  listLevelFiles,
  readLevelManifest,
} from '../../leveldb-files/level-manifest.ts'
import type { KeyRange, PurgeOptions } from '../store.ts'

/** Chosen: a table that is moved meanwhile gets closer to the last of the seven levels each time. */
const purgeTriesMax = 10

/**
 * @param compact - calls `compactRange` of LevelDB
 * @param readsEnded - resolves when no read is in progress that began before the call
 * @throws Error if a table was not replaced
 */
export async function purgeLevel(
  directory: string,
  purge: PurgeOptions,
  compact: (range: KeyRange) => Promise<void>,
  readsEnded: () => Promise<void>,
): Promise<void> {
  const { ranges } = purge
  const replaced = new Set<number>()
  await readsEnded()
  await compact(nothing)
  for (let tries = 0; ; tries++) {
    const { numbers, touched } = await markTables(directory, purge)
    if (numbers.size === 0) break
    for (const number of numbers) replaced.add(number)
    for (const range of touched) await compact(range)
    const after = await tablesOf(directory, ranges)
    const isReplaced = after.every(({ number }) => !replaced.has(number))
    const areLevel = ranges.every((range) => levelsOf(range, after) <= 1)
    if (isReplaced && (areLevel || tries >= purgeTriesMax)) break
    if (tries >= purgeTriesMax) throw new Error(`tables in ${directory} could not be replaced`)
  }
  for (let tries = 0; ; tries++) {
    await readsEnded()
    // Files that a read has held are deleted after the next flush.
    await compact(nothing)
    const files = await listLevelFiles(directory)
    if (!files.some(({ number }) => replaced.has(number))) return
    if (tries >= purgeTriesMax) throw new Error(`files in ${directory} could not be deleted`)
  }
}

/** No key is as small, so this only writes what is in memory to a table, and begins a new log. */
const nothing: KeyRange = { first: Buffer.from([0]), last: Buffer.from([0]) }

interface RangedTable {
  readonly number: number
  readonly level: number
  /** The parts of ranges that are between its first and its last key. */
  readonly parts: readonly { readonly of: KeyRange; readonly part: KeyRange }[]
}

/** Marks the tables that may have something that was deleted. Returns their numbers, and the ranges to which that belongs. */
async function markTables(
  directory: string,
  { ranges, mark }: PurgeOptions,
): Promise<{ numbers: ReadonlySet<number>; touched: ReadonlySet<KeyRange> }> {
  const numbers = new Set<number>()
  const touched = new Set<KeyRange>()
  for (const { number, parts } of await tablesOf(directory, ranges)) {
    for (const { of, part } of parts) {
      if (!(await mark(part))) continue
      numbers.add(number)
      touched.add(of)
    }
  }
  return { numbers, touched }
}

/** Returns on how many levels a range has tables. */
function levelsOf(range: KeyRange, tables: readonly RangedTable[]): number {
  const own = tables.filter(({ parts }) => parts.some(({ of }) => of === range))
  return new Set(own.map(({ level }) => level)).size
}

/** Returns the tables that may have keys of the ranges. */
async function tablesOf(directory: string, ranges: readonly KeyRange[]): Promise<RangedTable[]> {
  const manifest = await readLevelManifest(directory)
  if (manifest === undefined || !('tables' in manifest)) {
    throw new Error(`the list of files in ${directory} cannot be read`)
  }
  return manifest.tables.flatMap((table) => {
    const { number, level } = table
    const [first, last] = keysOfTable(table)
    if (first === undefined || last === undefined) return []
    const parts = ranges
      .map((of) => ({
        of,
        part: { first: greater(first, of.first), last: smaller(last, of.last) },
      }))
      .filter(({ part }) => Buffer.compare(part.first, part.last) <= 0)
    return parts.length === 0 ? [] : [{ number, level, parts }]
  })
}

function greater(a: Buffer, b: Buffer): Buffer {
  return Buffer.compare(a, b) > 0 ? a : b
}

function smaller(a: Buffer, b: Buffer): Buffer {
  return Buffer.compare(a, b) < 0 ? a : b
}
