/**
 * Records at a clean close how long the logs and the MANIFEST of a shard are, in `<shard>/closed`:
 *
 *     {"manifest":"MANIFEST-000004","lengths":{"000005.log":4711,"MANIFEST-000004":152},"crc":2774105215}
 *
 * After a crash, an end that cannot be read may never have been synced. After a clean close it is damage, and so is a
 * file that is shorter, longer or gone, because everything was synced before this record was.
 *
 * Every opening makes LevelDB name a new MANIFEST in CURRENT, and that name is synced before anything is written. A
 * record of another MANIFEST is therefore out of date, and needs no removal that could fail.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { CloseRecord } from '../../leveldb-files/level-manifest.ts'
import { readIfThere } from '../read-if-there.ts'
import { syncDirectory, syncFile, writeFileAtomically } from '../write-file.ts'

export const closeRecordName = 'closed'

/** Call this when LevelDB has closed a shard without a failed write, so that nobody writes to its files. */
export async function recordClose(directory: string): Promise<void> {
  const manifest = (await readFile(join(directory, 'CURRENT'), 'utf8')).trim()
  const lengths: Record<string, number> = {}
  for (const name of await readdir(directory)) {
    if (!name.endsWith('.log') && name !== manifest) continue
    await syncFile(join(directory, name), 'r+')
    lengths[name] = (await stat(join(directory, name))).size
  }
  // The record must not be there without the names of the files.
  await syncDirectory(directory)
  const record = { manifest, lengths, crc: crcOf(manifest, lengths) }
  await writeFileAtomically(join(directory, closeRecordName), `${JSON.stringify(record)}\n`, 0o600)
}

/** Returns undefined if the shard was never closed cleanly, or the record cannot be read. */
export async function readCloseRecord(directory: string): Promise<CloseRecord | undefined> {
  const text = (await readIfThere(join(directory, closeRecordName)))?.toString()
  try {
    const { manifest, lengths, crc } = JSON.parse(text ?? '')
    if (crcOf(manifest, lengths) !== crc) return undefined
    return { manifest, lengths: new Map(Object.entries<number>(lengths)) }
  } catch {
    return undefined
  }
}

function crcOf(manifest: string, lengths: Readonly<Record<string, number>>): number {
  return crc32(JSON.stringify([manifest, lengths]))
}
