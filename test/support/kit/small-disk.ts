/**
 * A small file system that a test fills up. It is mounted in a namespace of its own, which a process holds: it is gone when
 * the test has ended, however it ended.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, closeSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { EndingTest } from '../server/server.ts'

const mount = 'mount -t tmpfs -o "size=$1" postbote-test "$0"'
const piece = Buffer.alloc(64 << 10, 'x')

/** Why there is no such disk; undefined if there is one. */
export function smallDiskObstacle(): string | undefined {
  const { status } = spawnSync('unshare', ['-m', 'sh', '-c', mount, tmpdir(), '1m'])
  return status === 0 ? undefined : 'needs unshare -m and the right to mount a tmpfs in it'
}

export class SmallDisk {
  /** Where it is mounted, for programs that `prefix` starts. */
  readonly directory: string
  readonly #holder: ChildProcess

  private constructor(directory: string, holder: ChildProcess) {
    this.directory = directory
    this.#holder = holder
  }

  static async start(t: EndingTest, { mebibytes }: { mebibytes: number }): Promise<SmallDisk> {
    const directory = mkdtempSync(join(tmpdir(), 'postbote-disk-'))
    const script = `${mount} && chmod 777 "$0" && echo mounted && exec cat`
    const holder = spawn('unshare', ['-m', 'sh', '-c', script, directory, `${mebibytes}m`], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.after(async () => {
      holder.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    })
    await once(createInterface({ input: holder.stdout }), 'line')
    return new SmallDisk(directory, holder)
  }

  /** The beginning of a command that runs as this user and sees the disk. */
  prefix({
    uid = 0,
    gid = 0,
  }: {
    readonly uid?: number
    readonly gid?: number
  }): readonly string[] {
    return ['nsenter', `--target=${this.#holder.pid}`, '--mount', `-S${uid}`, `-G${gid}`, '--']
  }

  /** Takes all room that is left. */
  fill(): void {
    const ballast = openSync(this.#ballast, 'a')
    try {
      for (;;) writeSync(ballast, piece)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
    } finally {
      closeSync(ballast)
    }
  }

  /** Gives back what `fill` took. */
  makeRoom(): void {
    rmSync(this.#ballast)
  }

  get #ballast(): string {
    return join(`/proc/${this.#holder.pid}/root`, this.directory, 'ballast')
  }
}
