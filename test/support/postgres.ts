/** A real PostgreSQL server on loopback, in a directory of its own. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { freePort } from './port.ts'
import { until } from './until.ts'

const installed = '/usr/lib/postgresql'
/** The server refuses to run as root; "nobody" is on every system. */
const nobody = 65_534
const standbyName = 'standby'
const startAttemptsMax = 250
const startAttemptMs = 40

/** The directory of the programs, or undefined: then they are looked for on the path. */
function programDirectory(): string | undefined {
  if (!existsSync(installed)) return undefined
  const [newest] = readdirSync(installed).toSorted((a, b) => Number(b) - Number(a))
  return newest === undefined ? undefined : join(installed, newest, 'bin')
}

function program(name: string): string {
  const directory = programDirectory()
  return directory === undefined ? name : join(directory, name)
}

function identity(): { readonly uid?: number; readonly gid?: number } {
  return process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
}

/** Returns a new directory that belongs to the user of the server. */
function emptyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'postbote-pg-'))
  const { uid, gid } = identity()
  chmodSync(directory, 0o700)
  if (uid !== undefined && gid !== undefined) chownSync(directory, uid, gid)
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
}

export interface StandbyOptions {
  readonly isSynchronous: boolean
  /** Any free one by default. */
  readonly port?: number
}

export class Postgres {
  readonly port: number
  readonly directory: string
  readonly #settings: Readonly<Record<string, string>>
  #child: ChildProcess | undefined
  #output = ''

  private constructor(directory: string, port: number, settings: Readonly<Record<string, string>>) {
    this.directory = directory
    this.port = port
    this.#settings = settings
  }

  /** Creates a cluster of databases and starts its server. The caller ends it with `remove`. */
  static async start({ settings = {} }: PostgresOptions = {}): Promise<Postgres> {
    const directory = emptyDirectory()
    const args = [
      '-D',
      directory,
      '-U',
      'postbote',
      '-A',
      'trust',
      '-E',
      'UTF8',
      '--locale=C',
      '-N',
    ]
    const made = spawnSync(program('initdb'), args, {
      ...identity(),
      cwd: directory,
      encoding: 'utf8',
    })
    assert.equal(made.status, 0, `initdb: ${made.stdout}${made.stderr}`)
    const server = new Postgres(directory, await freePort(), settings)
    await server.up()
    return server
  }

  /** The process of the server, which is the parent of all others. */
  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /**
   * Copies this server and starts the copy as its standby. With `isSynchronous`, commits of this server wait for it from
   * then on.
   */
  async standby({ isSynchronous, port }: StandbyOptions): Promise<Postgres> {
    const directory = emptyDirectory()
    const from = `host=127.0.0.1 port=${this.port} user=postbote application_name=${standbyName}`
    const args = ['-d', from, '-D', directory, '-R', '-X', 'stream', '--checkpoint=fast']
    const made = spawnSync(program('pg_basebackup'), args, {
      ...identity(),
      cwd: directory,
      encoding: 'utf8',
    })
    assert.equal(made.status, 0, `pg_basebackup: ${made.stdout}${made.stderr}`)
    const standby = new Postgres(directory, port ?? (await freePort()), this.#settings)
    await standby.up()
    if (!isSynchronous) return standby
    await this.query(`ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (${standbyName})'`)
    await this.query('SELECT pg_reload_conf()')
    await until(async () => {
      const [row] = await this.query('SELECT sync_state FROM pg_stat_replication')
      return row?.['sync_state'] === 'quorum'
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
      ...this.#settings,
    }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(program('postgres'), ['-D', this.directory, ...args], {
      ...identity(),
      cwd: this.directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
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
