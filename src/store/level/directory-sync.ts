/**
 * Makes the names of LevelDB's files durable. LevelDB 1.20 syncs what it writes into a log, but the directory only before it
 * writes to its MANIFEST. So a log that it begins when a memtable is full may be nameless after a power loss, with all
 * that was acknowledged from it, and so may the CURRENT that a start has put in place, when the file system does no more than POSIX
 * demands. Therefore the directory is synced after opening, and again before a write counts as synced that is the first to
 * find a new log.
 *
 * To see a new log costs one stat of the directory after each synced write (3 us, against a millisecond for the write):
 * only where its time of change is another are the names listed. The kernel's clock for these times ticks as rarely as every
 * 10 ms, and a second change within a tick cannot be seen; the names are listed after every write until the time is
 * older than that.
 */
import { statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import type { Clock } from '../../clock.ts'
import { syncDirectory } from '../write-file.ts'

/** Twice the longest tick of a kernel, which is 10 ms (CONFIG_HZ=100). */
const changeTimeTrustedMs = 20

export interface DirectorySyncOptions {
  readonly directory: string
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** In place of fsync, for tests. */
  readonly sync?: ((directory: string) => Promise<void>) | undefined
}

export class DirectorySync {
  readonly #options: DirectorySyncOptions
  /** The logs whose names are durable, of those that are there. */
  #durable: ReadonlySet<string> = new Set()
  /** As it was seen last, in ns, and since when. */
  #changedAt: bigint | undefined
  #seenSinceMs = 0
  /** All names that the directory had at `#changedAt` have been looked at. */
  #isKnown = false

  constructor(options: DirectorySyncOptions) {
    this.#options = options
  }

  /** To be called when the database is open, before anything is acknowledged. */
  async opened(): Promise<void> {
    this.#durable = new Set()
    this.#changedAt = undefined
    await this.#syncNewLogs()
  }

  /** To be called after a synced write. Resolves when the log that it is in has a durable name; undefined where it has. */
  written(): Promise<void> | undefined {
    const { directory, clock } = this.#options
    const changedAt = statSync(directory, { bigint: true }).mtimeNs
    const nowMs = clock.monotonicMs()
    if (changedAt !== this.#changedAt) {
      this.#changedAt = changedAt
      this.#seenSinceMs = nowMs
      this.#isKnown = false
    }
    if (this.#isKnown) return undefined
    return this.#lookAgain(changedAt, nowMs - this.#seenSinceMs >= changeTimeTrustedMs)
  }

  async #lookAgain(changedAt: bigint, isOld: boolean): Promise<void> {
    await this.#syncNewLogs()
    if (isOld && this.#changedAt === changedAt) this.#isKnown = true
  }

  async #syncNewLogs(): Promise<void> {
    const { directory, sync = syncDirectory } = this.#options
    const logs = (await readdir(directory)).filter((name) => name.endsWith('.log'))
    if (logs.length > 0 && logs.every((name) => this.#durable.has(name))) return
    await sync(directory)
    this.#durable = new Set(logs)
  }
}
