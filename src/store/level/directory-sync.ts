/**
 * Makes the names of LevelDB's files durable. LevelDB 1.20 syncs what it writes to a log, but syncs the directory
 * only before it writes to its MANIFEST. On a file system that does no more than POSIX requires, a power loss can
 * therefore remove the name of a log that LevelDB began when a memtable was full, with every acknowledged write in
 * it. It can also undo the CURRENT that a start has put in place. So the directory is synced after opening, and again
 * before the first write that finds a new log counts as synced.
 *
 * A new log is detected with one stat of the directory after each synced write (3 us, compared with a millisecond for
 * the write). The names are listed only if the modification time of the directory has changed. The kernel's clock for
 * these times may tick only every 10 ms, and a second change within one tick is invisible. The names are therefore
 * listed after every write until the modification time is older than that.
 */
import { statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import type { Clock } from '../../kit/clock.ts'
import { syncDirectory } from '../write-file.ts'

/** Twice the longest tick of a kernel, which is 10 ms (CONFIG_HZ=100). */
const changeTimeTrustedMs = 20

export class DirectorySync {
  readonly #directory: string
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #sync: typeof syncDirectory
  /** The existing logs whose names are durable. */
  #durable: ReadonlySet<string> = new Set()
  /** The last modification time that was seen, in nanoseconds, and when it was first seen. */
  #changedAt: bigint | undefined
  #seenSinceMs = 0
  /** Whether all names that the directory had at `#changedAt` were listed. */
  #isKnown = false

  /** @param sync - replaces fsync in tests */
  constructor(directory: string, clock: Pick<Clock, 'monotonicMs'>, sync = syncDirectory) {
    this.#directory = directory
    this.#clock = clock
    this.#sync = sync
  }

  /** Call this when the database is open, before any write is acknowledged. */
  async opened(): Promise<void> {
    this.#durable = new Set()
    this.#changedAt = undefined
    await this.#syncNewLogs()
  }

  /**
   * Call this after a synced write. Resolves when the log of that write has a durable name; returns undefined if it
   * already has.
   */
  written(): Promise<void> | undefined {
    const changedAt = statSync(this.#directory, { bigint: true }).mtimeNs
    const nowMs = this.#clock.monotonicMs()
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
    const logs = (await readdir(this.#directory)).filter((name) => name.endsWith('.log'))
    if (logs.length > 0 && logs.every((name) => this.#durable.has(name))) return
    await this.#sync(this.#directory)
    this.#durable = new Set(logs)
  }
}
