/** The server of a peer: a process of ours with a directory of its own on the disk of the case. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CaseContext, CpuUsByProcess } from '../contestant.ts'
import { isOpen } from '../../test/support/kit/is-open.ts'
import { cpuUsOfFamily, processTree, residentBytesOf } from '../process-cpu.ts'
import { type ThreadTimes, threadTimes } from '../thread-cpu.ts'
import { until } from '../until.ts'
import type { PeerAddress, PeerServer } from './peer.ts'

const startMsMax = 60_000
const outputCharsMax = 4_000

export interface PeerCommand {
  readonly file: string
  readonly args: readonly string[]
  /** Where the server listens on loopback. */
  readonly port: number
  readonly cwd: string
  readonly env?: NodeJS.ProcessEnv
}

export class PeerProcess implements PeerServer {
  readonly address: PeerAddress
  readonly #child: ChildProcess
  #output = ''

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.address = { port }
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (bytes: Buffer) => {
        this.#output = (this.#output + bytes.toString()).slice(-outputCharsMax)
      })
    }
  }

  /** Starts the server, which ends with the case, and resolves when it accepts connections. */
  static async start(context: CaseContext, command: PeerCommand): Promise<PeerProcess> {
    const { file, args, port, cwd, env = {} } = command
    const child = spawn(file, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.on('error', () => undefined)
    const started = new PeerProcess(child, port)
    context.atEnd(() => started.#close())
    const end = (): void => started.#kill()
    process.once('exit', end)
    child.once('exit', () => process.off('exit', end))
    await until(async () => {
      if (child.pid === undefined || child.exitCode !== null)
        throw new Error(`${file} ended: ${started.#output}`)
      return isOpen(port)
    }, startMsMax)
    return started
  }

  cpuUsByProcess(): CpuUsByProcess {
    return { server: cpuUsOfFamily(this.#child.pid ?? 0) }
  }

  threadTimes(): Readonly<Record<string, ThreadTimes>> {
    return { server: threadTimes(this.#tree) }
  }

  residentBytes(): number {
    return residentBytesOf(this.#tree)
  }

  get #tree(): readonly number[] {
    return processTree(this.#child.pid ?? 0)
  }

  /** Nothing of its data is kept, so it ends at once. */
  async #close(): Promise<void> {
    const child = this.#child
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    this.#kill()
    await exited
  }

  #kill(): void {
    killAll(this.#tree)
  }
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
}

/** Whether a file exists at this path or, for a mere name, in a directory of PATH. */
export function isProgramInstalled(file: string): boolean {
  if (file.includes('/')) return existsSync(file)
  const directories = (process.env['PATH'] ?? '').split(':')
  return directories.some((directory) => existsSync(join(directory, file)))
}
