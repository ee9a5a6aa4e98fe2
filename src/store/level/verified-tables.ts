/**
 * Remembers which tables of a shard were verified, in the file `verified` of its directory:
 *
 *     {"tables":{"000005.ldb":[2113422,1800000000000.5,1800000000000.7,917542,1800000300000]},"crc":C}
 *                              size    modified (ms)   changed (ms)     inode  verified (ms)
 *
 * LevelDB never changes a table, so whatever writes to one, replaces or copies it makes it a table that was not verified. What
 * changes below the file system does not, and therefore everything is verified again once a day.
 *
 * The file is a hint. Without it, or with one that cannot be read, all tables are verified.
 */
import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { Clock } from '../../kit/clock.ts'
import { mib } from '../../kit/limits.ts'
import { isMissing } from '../read-if-there.ts'
import { writeFileAtomically } from '../write-file.ts'

/** Of a table: its size, when it was modified and changed, its inode, and when it was verified. */
type Entry = readonly [size: number, mtimeMs: number, ctimeMs: number, ino: number, atMs: number]

/** A table counts as verified for this long: once a day is what scrubs of disks do. */
export const verifiedForMs = 24 * 3_600_000

export class VerifiedTables {
  readonly #directory: string
  readonly #clock: Clock
  readonly #entries: Map<string, Entry>
  #isChanged = false

  constructor(directory: string, clock: Clock, entries: Map<string, Entry>) {
    this.#directory = directory
    this.#clock = clock
    this.#entries = entries
  }

  /** Without a record that can be read, no table counts as verified. */
  static async read(directory: string, clock: Clock): Promise<VerifiedTables> {
    const text = await readFile(join(directory, recordName), 'utf8').catch(() => '')
    return new VerifiedTables(directory, clock, decode(text))
  }

  /** Whether the table was verified within a day, and nobody has touched it since. */
  async has(path: string): Promise<boolean> {
    const known = this.#entries.get(basename(path))
    if (known === undefined) return false
    const ageMs = this.#clock.nowMs() - known[4]
    if (ageMs < 0 || ageMs >= verifiedForMs) return false
    const now = await entryOf(path, known[4])
    return now !== undefined && now.every((field, nth) => field === known[nth])
  }

  /** Runs `verify`, and notes the table as it was before that if it is sound. */
  async noteIfSound<Found extends readonly unknown[]>(
    path: string,
    verify: () => Promise<Found>,
  ): Promise<Found> {
    const before = await entryOf(path, this.#clock.nowMs())
    const found = await verify()
    if (found.length === 0 && before !== undefined) {
      this.#entries.set(basename(path), before)
      this.#isChanged = true
    }
    return found
  }

  /** Stores what was noted of the tables that there are. If that fails, they are verified again after the next start. */
  async save(paths: readonly string[]): Promise<void> {
    if (!this.#isChanged) return
    const names = new Set(paths.map((path) => basename(path)))
    const kept = [...this.#entries].filter(([name]) => names.has(name))
    const tables = Object.fromEntries(kept)
    const text = `${JSON.stringify({ tables, crc: crcOf(tables) })}\n`
    await writeFileAtomically(join(this.#directory, recordName), text, 0o600).catch(() => undefined)
    this.#isChanged = false
  }
}

const recordName = 'verified'
/** A longer record is not read: 10,000 tables, of 20 GB, have less, and the parser needs seconds for some texts of 64 MB. */
const recordCharactersMax = mib

async function entryOf(path: string, atMs: number): Promise<Entry | undefined> {
  try {
    const { size, mtimeMs, ctimeMs, ino } = await stat(path)
    return [size, mtimeMs, ctimeMs, ino, atMs]
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function decode(text: string): Map<string, Entry> {
  if (text.length > recordCharactersMax) return new Map()
  try {
    const { tables, crc } = JSON.parse(text)
    if (crcOf(tables) === crc) return new Map(Object.entries<unknown>(tables).filter(isEntry))
  } catch {
    // As without the file.
  }
  return new Map()
}

function isEntry(named: [name: string, entry: unknown]): named is [string, Entry] {
  const [, entry] = named
  return Array.isArray(entry) && entry.length === 5 && entry.every(Number.isFinite)
}

function crcOf(tables: object): number {
  return crc32(JSON.stringify(tables))
}
