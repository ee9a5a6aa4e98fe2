/**
 * Watches the free space of the disk. Pushes are refused below the reserve, so that confirms and compactions, which
 * need some space to free more, never meet a full disk. After a failed write, a probe shows whether writing works
 * again before the database is reopened.
 */
import { open, rm, statfs as systemStatfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Timer } from '../kit/clock.ts'
import { every } from '../kit/clock.ts'
import type { StoreSpace } from './store-engine.ts'
import { mib } from '../kit/limits.ts'

/**
 * The free space of the disk is read this often. In one second the fastest measured ingest (134,000 updates of 300 bytes)
 * stores some 40 MB, far less than the reserve of 256 MiB.
 */
const diskCheckPeriodMs = 1_000
/** The space is nearly low below this many times the reserve. Chosen: what is deleted frees space only some compactions later. */
const nearlyLowShare = 2

type Statfs = (path: string) => Promise<{ readonly bavail: number; readonly bsize: number }>

export class DiskSpace implements StoreSpace {
  readonly #directory: string
  readonly #reserveBytes: number
  readonly #clock: Clock
  readonly #statfs: Statfs
  #freeBytes = Number.POSITIVE_INFINITY
  #timer: Timer | undefined

  constructor(
    directory: string,
    reserveBytes: number,
    clock: Clock,
    statfs: Statfs = systemStatfs,
  ) {
    this.#directory = directory
    this.#reserveBytes = reserveBytes
    this.#clock = clock
    this.#statfs = statfs
  }

  /** Checks the free space now, and every second from then on. Rejects if the first check fails. */
  async start(): Promise<void> {
    await this.#look()
    this.#timer?.cancel()
    // A later check that fails changes nothing: the previous result remains the best estimate.
    this.#timer = every(this.#clock, diskCheckPeriodMs, () => this.#look().catch(() => undefined))
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  isLow(): boolean {
    return this.#freeBytes < this.#reserveBytes
  }

  isNearlyLow(): boolean {
    return this.#freeBytes < this.#reserveBytes * nearlyLowShare
  }

  /** Bytes that an unprivileged process may still write, according to the last check. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  async #look(): Promise<void> {
    const { bavail, bsize } = await this.#statfs(this.#directory)
    this.#freeBytes = bavail * bsize
  }
}

const probeChunk = Buffer.alloc(256 * 1024, 'probe')

/**
 * A probe of the disk writes this many bytes: when a database is opened, it writes its logs as tables of up to two of
 * LevelDB's write buffers. With less space the opening fails, too, and a shard that could be read is closed.
 */
const diskProbeBytes = 8 * mib

/**
 * Returns whether `directory` now accepts as many bytes, written and fsynced, as reopening a database needs. Leaves
 * no file.
 */
export async function probeDisk(directory: string): Promise<boolean> {
  const path = join(directory, 'probe.tmp')
  try {
    const file = await open(path, 'w', 0o600)
    try {
      for (let written = 0; written < diskProbeBytes; written += probeChunk.length) {
        await file.writeFile(probeChunk)
      }
      await file.sync()
    } finally {
      await file.close()
    }
    return true
  } catch {
    return false
  } finally {
    await rm(path, { force: true }).catch(() => undefined)
  }
}
