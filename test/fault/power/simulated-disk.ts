/**
 * A disk for a server's data directory that can lose its power and can be made to fail:
 *
 *     const disk = new SimulatedDisk(place)          // compiles disk-shim.c into `place`
 *     ... start the server with disk.env on disk.root ...
 *     disk.fail('full'), disk.fail('none')
 *     ... kill every process of the server ...
 *     disk.losePower({ kind: 'posix', luck })        // then restart the server
 */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Luck } from '../../support/simulation/luck.ts'
import type { DiskKind } from './disk-journal.ts'
import { losePower, syncedLines } from './power-loss.ts'

/**
 * Full: nothing can be written (ENOSPC). Sync: no sync succeeds (EIO). Write: neither works (EIO). With the others, a sync
 * of a log never returns: nothing of it has happened yet, or all of it. With the last ones, only files of one kind are full.
 */
const faults = {
  none: 0,
  full: 1,
  sync: 2,
  write: 3,
  'sync begins': 4,
  'sync ended': 5,
  'full for logs': 6,
  'full for tables': 7,
  'full for lists': 8,
} as const
export type DiskFault = keyof typeof faults

const source = fileURLToPath(new URL('../../../../test/fault/power/disk-shim.c', import.meta.url))

export class SimulatedDisk {
  /** The directory on this disk. */
  readonly root: string
  /** The environment for every process that uses the disk. */
  readonly env: NodeJS.ProcessEnv
  readonly #journal: string
  readonly #graves: string
  readonly #faults: string

  /** `place` is an existing directory for the disk alone. The files in `place/data` count as synced. */
  constructor(place: string) {
    const real = realpathSync(place)
    this.root = join(real, 'data')
    this.#journal = join(real, 'disk-journal')
    this.#graves = join(real, 'disk-graves')
    this.#faults = join(real, 'disk-faults')
    const library = join(real, 'disk-shim.so')
    execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, source, '-ldl'])
    mkdirSync(this.root, { recursive: true, mode: 0o700 })
    writeFileSync(this.#faults, Buffer.alloc(8))
    this.#begin()
    this.env = {
      LD_PRELOAD: library,
      DISK_SHIM_ROOT: this.root,
      DISK_SHIM_JOURNAL: this.#journal,
      DISK_SHIM_GRAVES: this.#graves,
      DISK_SHIM_FAULTS: this.#faults,
      // The calls of io_uring would bypass the shim.
      UV_USE_IO_URING: '0',
    }
  }

  /** Sets the fault for all processes from now on. */
  fail(fault: DiskFault): void {
    const file = openSync(this.#faults, 'r+')
    writeSync(file, Buffer.from([faults[fault], 0, 0, 0, 0, 0, 0, 0]))
    closeSync(file)
  }

  /** Returns the process whose sync stands still, or 0. */
  heldPid(): number {
    return readFileSync(this.#faults).readInt32LE(4)
  }

  /** No process may use the disk. What remains counts as synced. Returns descriptions of what was lost. */
  losePower(how: { readonly kind: DiskKind; readonly luck: Luck }): readonly string[] {
    const losses = losePower({
      root: this.root,
      journal: this.#journal,
      graves: this.#graves,
      ...how,
    })
    this.#begin()
    return losses
  }

  #begin(): void {
    rmSync(this.#graves, { recursive: true, force: true })
    mkdirSync(this.#graves, { mode: 0o700 })
    writeFileSync(this.#journal, syncedLines(this.root), { mode: 0o600 })
  }
}
