/** Tables of a stopped server's shard, which the test itself creates and damages. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/kit/clock.ts'
import { shardPath } from '../../../src/shard/data-directory.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import { encodeUpdate } from '../../../src/shard/records/record.ts'

/** Returns the paths of the tables of a shard, oldest first. */
export function tablesOf(dataDir: string, shard: number): string[] {
  const directory = shardPath(dataDir, shard)
  return readdirSync(directory)
    .filter((name) => /^\d+\.ldb$/.test(name))
    .toSorted()
    .map((name) => join(directory, name))
}

/**
 * Adds tables to a shard. Its log becomes a table of level 0, and so do `count` logs with updates of a bot that the server
 * does not know. With `leavesLog`, one more such log is left, which the next start converts. LevelDB compacts four tables.
 */
export async function addTables(
  dataDir: string,
  shard: number,
  { botId = 100, count = 0, leavesLog = false } = {},
): Promise<void> {
  for (let at = 0; at <= count; at++) {
    const store = new LevelStore({
      directory: shardPath(dataDir, shard),
      clock: systemClock,
      lockWaitMs: 0,
    })
    await store.open()
    // The keys are the same each time, so that no table can be moved to another level unchanged.
    if (at < count || leavesLog) await store.write(junkUpdates(botId), { sync: true })
    await store.close()
  }
}

/** Random texts, which Snappy does not compress, so that any damage in a block is in its entries. */
function junkUpdates(botId: number): { type: 'put'; key: Buffer; value: Buffer }[] {
  return Array.from({ length: 200 }, (_, updateId) => {
    const key = kinds.update.key(botId, updateId + 1)
    const value = encodeUpdate(key, {
      typeNumber: 0,
      acceptedAtS: 1_800_000_000,
      expiresAtS: 4_000_000_000,
      orderingKey: '',
      text: Buffer.from(`"message":{"text":"${randomBytes(200).toString('base64')}"}`),
    })
    return { type: 'put', key, value }
  })
}

/** Zeroes the sector in the middle of a file, as a disk does that has lost one. */
export function zeroSector(path: string): void {
  const bytes = readFileSync(path)
  const start = Math.floor(statSync(path).size / 2 / 512) * 512
  bytes.fill(0, start, start + 512)
  writeFileSync(path, bytes)
}
