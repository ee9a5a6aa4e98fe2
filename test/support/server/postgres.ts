/** A real PostgreSQL server on loopback, in a directory of its own. */
import assert from 'node:assert/strict'
import { type ChildProcess, type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { Client } from 'pg'
import { freePort } from '../kit/port.ts'
import type { SmallDisk } from '../kit/small-disk.ts'
import { temporaryRoot } from '../kit/temporary-root.ts'
import { until } from '../kit/until.ts'
import { childrenOf } from '../kit/processes-below.ts'
import { sendSignal } from '../kit/send-signal.ts'

const installed = '/usr/lib/postgresql'
/** The server refuses to run as root; "nobody" is on every system. */
const nobody = 65_534
const standbyName = 'standby'
const startAttemptsMax = 250
const startAttemptMs = 40

/** The directory of the programs, or undefined: then they are looked for on the path. */
export function programDirectory(): string | undefined {
  if (!existsSync(installed)) return undefined
  const [newest] = readdirSync(installed).toSorted((a, b) => Number(b) - Number(a))
  return newest === undefined ? undefined : join(installed, newest, 'bin')
}

function program(name: string): string {
  const directory = programDirectory()
  return directory === undefined ? name : join(directory, name)
}

/** The user of the server, if this one must not run it. */
export function identity(): { readonly uid?: number; readonly gid?: number } {
  return process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
}

/** Returns a new directory that belongs to the user of the server. */
function emptyDirectory(): string {
  const directory = mkdtempSync(join(temporaryRoot, 'postbote-pg-'))
  const { uid, gid } = identity()
  chmodSync(directory, 0o700)
  if (uid !== undefined && gid !== undefined) chownSync(directory, uid, gid)
  return directory
}

interface ProgramPlace {
  readonly cwd: string
  /** The beginning of a command that runs another one on a disk of its own, as the user of the server. */
  readonly prefix?: readonly string[] | undefined
}

/** Starts a program as the user of the server. */
function startProgram(
  command: readonly string[],
  { cwd, prefix }: ProgramPlace,
): ChildProcessByStdio<null, Readable, Readable> {
  const [file = '', ...args] = [...(prefix ?? []), ...command]
  // A prefix changes the user itself, which needs the rights of this one.
  const user = prefix === undefined ? identity() : {}
  return spawn(file, args, { ...user, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Runs a program to its end. Other work of this process goes on meanwhile. */
async function runProgram(command: readonly string[], place: ProgramPlace): Promise<void> {
  const child = startProgram(command, place)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  const [code]: unknown[] = await once(child, 'close')
  assert.equal(code, 0, `${command[0]}: ${output}`)
}

/**
 * Returns a directory that `initdb` has made. It stays in the directory for temporary files, because making it takes ten
 * times as long as copying it.
 */
async function template(): Promise<string> {
  const version = /\d+/.exec(programDirectory() ?? '')?.[0] ?? ''
  const directory = join(temporaryRoot, `postbote-postgres-${version}-${process.getuid?.() ?? ''}`)
  if (existsSync(directory)) return directory
  const made = emptyDirectory()
  const args = ['-D', made, '-U', 'postbote', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N']
  await runProgram([program('initdb'), ...args], { cwd: made })
  try {
    renameSync(made, directory)
  } catch (error) {
    // Another test was faster.
    rmSync(made, { recursive: true })
    if (!existsSync(directory)) throw error
  }
  return directory
}

/** Why PostgreSQL is not available; undefined if it is. */
export function postgresObstacle(): string | undefined {
  const { error } = spawnSync(program('postgres'), ['--version'])
  return error === undefined
    ? undefined
    : 'PostgreSQL is not installed: ./scripts/install-test-tools'
}

export interface PostgresOptions {
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** Holds the directory of the server; otherwise that of temporary files does. */
  readonly disk?: SmallDisk
}

interface PostgresPlace {
  readonly directory: string
  readonly port: number
  readonly prefix?: ProgramPlace['prefix']
}

export interface StandbyOptions {
  readonly isSynchronous: boolean
  /** Default: any free port. */
  readonly port?: number
}

export class Postgres {
  readonly port: number
  readonly directory: string
  readonly #settings: Readonly<Record<string, string>>
  readonly #prefix: ProgramPlace['prefix']
  #child: ChildProcess | undefined
  #output = ''

  private constructor(
    { directory, port, prefix }: PostgresPlace,
    settings: Readonly<Record<string, string>>,
  ) {
    this.directory = directory
    this.port = port
    this.#prefix = prefix
    this.#settings = settings
  }

  /** Creates a cluster of databases and starts its server. The caller ends it with `remove`. */
  static async start({ settings = {}, disk }: PostgresOptions = {}): Promise<Postgres> {
    const prefix = disk?.prefix(identity())
    const directory = disk === undefined ? emptyDirectory() : join(disk.directory, 'database')
    await runProgram(['cp', '-aT', await template(), directory], { cwd: tmpdir(), prefix })
    const server = new Postgres({ directory, port: await freePort(), prefix }, settings)
    await server.up()
    return server
  }

  /** A server that another program runs, for queries. */
  static at(place: PostgresPlace): Postgres {
    return new Postgres(place, {})
  }

  /** The process of the server, which is the parent of all others. */
  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** False once the server has ended by itself. */
  get isRunning(): boolean {
    return (
      this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
    )
  }

  /**
   * Copies this server and starts the copy as its standby. With `isSynchronous`, commits of this server wait for it from
   * then on. A standby that takes the port of a failed primary keeps a URL with two servers valid over many failovers.
   */
  async standby({ isSynchronous, port }: StandbyOptions): Promise<Postgres> {
    const directory = emptyDirectory()
    const from = `host=127.0.0.1 port=${this.port} user=postbote application_name=${standbyName}`
    const args = ['-d', from, '-D', directory, '-R', '-X', 'stream', '--checkpoint=fast']
    await runProgram([program('pg_basebackup'), ...args], { cwd: directory })
    const standby = new Postgres({ directory, port: port ?? (await freePort()) }, this.#settings)
    await standby.up()
    if (!isSynchronous) return standby
    await this.query(`ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (${standbyName})'`)
    await this.query('SELECT pg_reload_conf()')
    await until(async () => {
      const rows = await this.query('SELECT sync_state FROM pg_stat_replication')
      return rows.some((row) => row['sync_state'] === 'quorum')
    })
    return standby
  }

  /** Makes a standby the primary. It waits for no standby of its own. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote()')
  }

  /** The URL of a database of this server. */
  url(database = 'postgres'): string {
    return `postgres://postbote@127.0.0.1:${this.port}/${database}`
  }

  /** Starts the server, and resolves when it accepts connections. */
  async up(): Promise<void> {
    const settings = {
      listen_addresses: '127.0.0.1',
      port: `${this.port}`,
      unix_socket_directories: this.directory,
      // The system outlives every server of a test.
      fsync: 'off',
      shared_buffers: '32MB',
      // Without statistics, small tables look large, and compiling their queries takes seconds of CPU.
      jit: 'off',
      ...this.#settings,
    }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const command = [program('postgres'), '-D', this.directory, ...args]
    const child = startProgram(command, { cwd: tmpdir(), prefix: this.#prefix })
    child.stdout.resume()
    this.#child = child
    child.stderr.on('data', (chunk: Buffer) => (this.#output += chunk.toString()))
    for (let attempt = 0; attempt < startAttemptsMax; attempt++) {
      assert.equal(child.exitCode, null, `PostgreSQL ended: ${this.#output}`)
      if (await this.#isUp()) return
      await new Promise((resolve) => setTimeout(resolve, startAttemptMs))
    }
    throw new Error(`PostgreSQL does not start: ${this.#output}`)
  }

  /** Runs SQL as the owner of the server. */
  async query(
    text: string,
    database = 'postgres',
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const client = new Client({ connectionString: this.url(database) })
    client.on('error', () => undefined)
    await client.connect()
    try {
      const { rows } = await client.query<Record<string, unknown>>(text)
      return rows
    } finally {
      await client.end()
    }
  }

  /** Creates an empty database and returns its URL. */
  async newDatabase(name: string): Promise<string> {
    await this.query(`CREATE DATABASE ${name}`)
    return this.url(name)
  }

  /** Sends the server a signal and waits for its end. SIGINT is its fast shutdown. */
  async down(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  /** Kills the server with all of its processes, as the loss of its machine does. */
  async crash(): Promise<void> {
    const exited = this.#child === undefined ? undefined : once(this.#child, 'exit')
    this.signal('SIGKILL')
    this.#child = undefined
    await exited
  }

  /** Sends a signal to all processes of the server. SIGSTOP freezes it, and SIGCONT lets it go on. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this
    if (pid === 0) return
    // The parent comes first, so that it starts no other process meanwhile.
    process.kill(pid, signal)
    for (const child of childrenOf(pid)) sendSignal(child, signal)
  }

  /** Stops the server and removes its directory. */
  async remove(): Promise<void> {
    await this.down('SIGQUIT')
    rmSync(this.directory, { recursive: true, force: true })
  }

  async #isUp(): Promise<boolean> {
    try {
      await this.query('SELECT 1')
      return true
    } catch {
      return false
    }
  }
}
