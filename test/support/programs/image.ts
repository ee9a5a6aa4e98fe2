/**
 * The image of the Dockerfile without Docker: a directory with the files that its last stage copies, and a server that runs
 * from it as the image would run it. The build stage is this checkout; `npm prune` is done by the lock file.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Dockerfile } from '../../../scripts/packing/dockerfile.ts'
import { root } from '../server/package-user.ts'
import type { EndingTest } from '../server/server.ts'
import { childrenOf } from '../kit/processes-below.ts'
import { temporaryDirectory } from '../kit/temporary-directory.ts'

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>
}

/** In the image; here it is the directory itself. */
const home = '/postbote'
/** Mounts everything but the data directory read-only, and becomes the program of the image. */
const enter = `
mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro / && cd "$2" && shift 2 &&
exec setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
`

/** Why no such server can run here; false if one can. */
export function imageObstacle(): string | false {
  const script = `set -- "$0" / "$1" --version; ${enter}`
  const args = ['-mpf', '--mount-proc', 'sh', '-c', script, '/tmp', process.execPath]
  const { status, stderr, error } = spawnSync('unshare', args, { encoding: 'utf8' })
  if (status === 0) return false
  return `needs unshare, setpriv and the right to mount: ${error?.message ?? stderr.trim()}`
}

export class Image extends Dockerfile {
  constructor() {
    super(root)
  }

  /** Returns a directory that has what the image has in its home. */
  assemble(t: EndingTest): string {
    const directory = temporaryDirectory(t)
    chmodSync(directory, 0o755)
    for (const { source, target } of this.copies) {
      const to = join(directory, target)
      if (source === 'node_modules') copyProductionPackages(to)
      else {
        assert(existsSync(join(root, source)), source)
        mkdirSync(dirname(to), { recursive: true })
        cpSync(join(root, source), to, { recursive: true })
      }
    }
    return directory
  }

  /** Starts the image as process 1 of a container. `env` is added to its environment. */
  start(t: EndingTest, env: Readonly<Record<string, string>>): RunningImage {
    // Hooks run in order, so the server ends before its directories are removed.
    t.after(async () => running.kill())
    const directory = this.assemble(t)
    const data = temporaryDirectory(t)
    assert.equal(this.value('USER'), '1000:1000')
    chownSync(data, 1_000, 1_000)
    const [program, ...args] = [...this.command('ENTRYPOINT'), ...this.command('CMD')]
    assert.equal(program, 'node')
    const here = args.map((arg) => arg.replace(`${home}/`, `${directory}/`))
    const command = ['sh', '-c', enter, 'sh', data, directory, process.execPath, ...here]
    const child = spawn('unshare', ['-mpf', '--kill-child', '--mount-proc', ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], ...this.env, POSTBOTE_DIR: data, ...env },
    })
    const running = new RunningImage(child, data)
    return running
  }
}

export class RunningImage {
  readonly data: string
  readonly #child: ChildProcess
  readonly #closed: Promise<unknown>
  #output = ''

  constructor(child: ChildProcess, data: string) {
    this.data = data
    this.#child = child
    this.#closed = once(child, 'close')
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    }
  }

  async kill(): Promise<void> {
    // Process 1 has changed its user, so it does not die with the process that started it.
    if (this.firstPid !== undefined) process.kill(this.firstPid, 'SIGKILL')
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  get output(): string {
    return this.#output
  }

  /** The id, outside of the container, of its process 1. undefined while it is not there. */
  get firstPid(): number | undefined {
    return childrenOf(this.#child.pid ?? 0)[0]
  }

  /** The processes that process 1 has started, including those that have ended and that it has not waited for. */
  get workerPids(): readonly number[] {
    return childrenOf(this.firstPid ?? 0)
  }

  /** Sends a signal to process 1, as `docker stop` does, and returns the exit code of the container. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    assert(this.firstPid !== undefined, this.#output)
    process.kill(this.firstPid, signal)
    await this.#closed
    return this.#child.exitCode
  }
}

/** What `npm prune --omit=dev` leaves. */
function copyProductionPackages(to: string): void {
  const { packages }: Lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  for (const [path, { dev, link }] of Object.entries(packages)) {
    // Packages in packages come with them.
    if (!/^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path) || dev === true || link === true) continue
    if (!existsSync(join(root, path))) continue
    cpSync(join(root, path), join(to, path.replace('node_modules/', '')), { recursive: true })
  }
}
