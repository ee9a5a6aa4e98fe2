/**
 * Whether the disk still has room. Pushes are refused below the reserve, so that confirming and compaction,
 * which need some to free more, never meet a full disk; and once a write has failed, a probe tells whether
 * writing works again before the database is opened anew.
 */

import { open, rm, statfs as systemStatfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Timer } from '../clock.ts'
import { every } from '../clock.ts'
import { diskCheckPeriodMs, diskProbeBytes } from '../limits.ts'

export interface DiskSpaceOptions {
  readonly directory: string
  readonly reserveBytes: number
  readonly clock: Clock
  readonly statfs?: (path: string) => Promise<{ readonly bavail: number; readonly bsize: number }>
}

export class DiskSpace {
  readonly #options: DiskSpaceOptions
  readonly #statfs: NonNullable<DiskSpaceOptions['statfs']>
  #freeBytes = Number.POSITIVE_INFINITY
  #timer: Timer | undefined

  constructor(options: DiskSpaceOptions) {
    this.#options = options
    this.#statfs = options.statfs ?? systemStatfs
  }

  /** Looks once, rejecting where that fails, and from then on every second. */
  async start(): Promise<void> {
    await this.#look()
    this.#timer?.cancel()
    // A later look that fails changes nothing: the last answer is the best there is.
    this.#timer = every(this.#options.clock, diskCheckPeriodMs, () =>
      this.#look().catch(() => undefined),
    )
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  isLow(): boolean {
    return this.#freeBytes < this.#options.reserveBytes
  }

  /** Bytes a process without privileges may still write, as of the last look. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  async #look(): Promise<void> {
    const { bavail, bsize } = await this.#statfs(this.#options.directory)
    this.#freeBytes = bavail * bsize
  }
}

const probeChunk = Buffer.alloc(256 * 1024, 'probe')

/** Whether as much as a reopening needs can be written and fsynced in `directory` now. Leaves nothing behind. */
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
