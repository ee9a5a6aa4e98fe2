/**
 * Reads all records of a shard from LevelDB's files without LevelDB (file-parts.ts), and finds all damage on the way: also
 * whether the tables and logs are there with the right sizes.
 *
 * A server may use the directory at the same time, even in the same process. LevelDB then deletes tables and logs that it no
 * longer needs. Before they count as missing, the MANIFEST is read again. No file is changed, and LOCK is not opened.
 */
import { fileParts, lossIn, missingTable, readUnlessGone } from '../../leveldb-files/file-parts.ts'
import type { FilesPart } from '../../leveldb-files/files-part.ts'
import type { ReadShardOptions } from '../store-files.ts'
import {
  isStillListed,
  lastWrittenLogs,
  type ShardFileList,
  settledList,
} from './shard-file-list.ts'

/** Reads the files of a shard, as `StoreFiles.read` says. */
export async function* readShardFiles(options: ReadShardOptions): AsyncGenerator<FilesPart> {
  const list = await settledList(options.directory)
  for (const fault of list.faults) {
    yield lossIn(fault.file, fault)
  }
  const files = list.tables.length + list.logs.length
  let filesRead = 0
  const countFile = (): void => options.onProgress?.(++filesRead, files)
  yield* partsOfTables(list, options, countFile)
  yield* partsOfLogs(list, options, countFile)
}

async function* partsOfTables(
  list: ShardFileList,
  options: ReadShardOptions,
  countFile: () => void,
): AsyncGenerator<FilesPart> {
  for (const { path, listed } of list.tables) {
    const file = await readUnlessGone(path, options)
    if (options.signal?.aborted === true) return
    if (file !== undefined) yield* fileParts({ path, listed, file }, options)
    else if (await isStillListed(options.directory, path)) yield missingTable(path, listed)
    countFile()
  }
}

async function* partsOfLogs(
  list: ShardFileList,
  options: ReadShardOptions,
  countFile: () => void,
): AsyncGenerator<FilesPart> {
  const lastWritten = await lastWrittenLogs(list.logs)
  for (const { path, closedBytes } of list.logs) {
    const file = await readUnlessGone(path, options)
    if (options.signal?.aborted === true) return
    const isLast = lastWritten.has(path)
    // A log that is gone has become a table since it was listed.
    if (file !== undefined) yield* fileParts({ path, isLast, closedBytes, file }, options)
    countFile()
  }
}
