/**
 * Two PostgreSQL servers that Patroni runs, with `synchronous_mode`, and one etcd in which they elect their leader. The times
 * are the shortest that current versions of Patroni allow without a warning: a leader is lost after 20 s without a sign of life.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { treeOf } from '../support/kit/processes-below.ts'
import { freePort } from '../support/kit/port.ts'
import { sendSignal } from '../support/kit/send-signal.ts'
import { identity, Postgres, programDirectory } from '../support/server/postgres.ts'
import { type EndingTest, send } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { witnessSettings } from './epoch-witness.ts'

const names = ['p1', 'p2'] as const
const electionMsMax = 120_000
const dynamic = {
  ttl: 20,
  loop_wait: 5,
  retry_timeout: 5,
  synchronous_mode: true,
  postgresql: {
    use_pg_rewind: true,
    parameters: { ...witnessSettings, wal_log_hints: 'on', fsync: 'off', shared_buffers: '32MB' },
  },
}

/** Why Patroni is not available; undefined if it is. */
export function patroniObstacle(): string | undefined {
  const isMissing = ['patroni', 'etcd'].some(
    (name) => spawnSync(name, ['--version']).error !== undefined,
  )
  return isMissing
    ? 'Patroni or etcd is not installed: ./scripts/install-packages patroni etcd-server'
    : undefined
}

/** One machine with Patroni and its PostgreSQL. */
class Member {
  readonly server: Postgres
  readonly #directory: string
  /** The port of Patroni's API. */
  readonly #api: number
  #patroni: ChildProcess | undefined

  constructor(directory: string, server: Postgres, api: number) {
    this.#directory = directory
    this.server = server
    this.#api = api
  }

  start(): void {
    this.#patroni = run(['patroni', join(this.#directory, 'patroni.json')], this.#directory)
  }

  get isRunning(): boolean {
    return this.#patroni !== undefined
  }

  /** Whether Patroni would promote it. PostgreSQL calls it synchronous some seconds earlier. */
  async isSynchronous(): Promise<boolean> {
    const url = `http://127.0.0.1:${this.#api}/synchronous`
    const response = await send({ method: 'GET', url }).catch(() => undefined)
    return response?.status === 200
  }

  async isLeader(): Promise<boolean> {
    const rows = await this.server.query('SELECT pg_is_in_recovery() AS follows').catch(() => [])
    return rows[0]?.['follows'] === false
  }

  /** Kills PostgreSQL with all of its processes. */
  killPostgres(): void {
    const pid = this.#postmaster()
    for (const each of pid === undefined ? [] : treeOf(pid)) sendSignal(each, 'SIGKILL')
  }

  /** Patroni starts PostgreSQL as a daemon. The file of a server that was killed stays, and another process may have its pid. */
  #postmaster(): number | undefined {
    const data = join(this.#directory, 'data')
    try {
      const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
      return readlinkSync(`/proc/${pid}/cwd`) === data ? pid : undefined
    } catch {
      return undefined
    }
  }

  /** Kills Patroni, so that it does not start PostgreSQL again. */
  async killPatroni(): Promise<void> {
    if (this.#patroni === undefined) return
    const exited = once(this.#patroni, 'exit')
    this.#patroni.kill('SIGKILL')
    this.#patroni = undefined
    await exited
  }
}

export class PatroniPair {
  readonly ports: readonly number[]
  readonly #members: readonly Member[]
  #leader: Member

  private constructor(members: readonly Member[], leader: Member) {
    this.#members = members
    this.ports = members.map(({ server }) => server.port)
    this.#leader = leader
  }

  /** Everything ends with the test. */
  static async start(t: EndingTest): Promise<PatroniPair> {
    const directory = temporaryDirectory(t)
    own(directory)
    const etcd = await startEtcd(t, directory)
    const members = await Promise.all(
      names.map((name) => memberAt(join(directory, name), name, etcd)),
    )
    t.after(async () => {
      for (const member of members) {
        await member.killPatroni()
        member.killPostgres()
      }
    })
    const [first, ...others] = members
    assert(first !== undefined)
    first.start()
    await until(() => first.isLeader(), electionMsMax)
    for (const member of others) member.start()
    const pair = new PatroniPair(members, first)
    await pair.whole()
    return pair
  }

  /** The server that was the leader when `elected` resolved last. */
  get primary(): Postgres {
    return this.#leader.server
  }

  /** Kills the PostgreSQL of the leader, and its Patroni, too, if the machine is lost. Resolves when there is a leader. */
  async loseLeader(what: 'machine' | 'postgres'): Promise<void> {
    const lost = this.#leader
    if (what === 'machine') await lost.killPatroni()
    lost.killPostgres()
    await this.#elected()
  }

  /** Starts what was lost, and resolves when the leader has a synchronous standby. */
  async mend(): Promise<void> {
    for (const member of this.#members) if (!member.isRunning) member.start()
    await this.whole()
  }

  /** Resolves when the leader has a synchronous standby. */
  async whole(): Promise<void> {
    await until(async () => {
      const standbys = this.#members.map((member) => member.isSynchronous())
      return (await Promise.all(standbys)).includes(true)
    }, electionMsMax)
  }

  async #elected(): Promise<void> {
    await until(async () => {
      for (const member of this.#members) {
        if (!(await member.isLeader())) continue
        this.#leader = member
        return true
      }
      return false
    }, electionMsMax)
  }
}

/** Returns the address of a new etcd. */
async function startEtcd(t: EndingTest, directory: string): Promise<string> {
  const [client, peer] = [await freePort(), await freePort()]
  const [clientUrl, peerUrl] = [client, peer].map((port) => `http://127.0.0.1:${port}`)
  const etcd = run(
    [
      'etcd',
      `--data-dir=${join(directory, 'etcd')}`,
      `--listen-client-urls=${clientUrl}`,
      `--advertise-client-urls=${clientUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
    ],
    directory,
  )
  t.after(async () => void etcd.kill('SIGKILL'))
  return `127.0.0.1:${client}`
}

async function memberAt(directory: string, name: string, etcd: string): Promise<Member> {
  mkdirSync(directory)
  own(directory)
  const [port, api] = [await freePort(), await freePort()]
  const settings = {
    scope: 'nemeses',
    name,
    restapi: { listen: `127.0.0.1:${api}`, connect_address: `127.0.0.1:${api}` },
    etcd3: { host: etcd },
    bootstrap: { dcs: dynamic, initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, { auth: 'trust' }] },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: join(directory, 'data'),
      pgpass: join(directory, 'pgpass'),
      bin_dir: programDirectory(),
      parameters: { unix_socket_directories: directory },
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      authentication: {
        superuser: { username: 'postbote' },
        replication: { username: 'replicator' },
        rewind: { username: 'postbote' },
      },
    },
  }
  // JSON is YAML, too.
  writeFileSync(join(directory, 'patroni.json'), JSON.stringify(settings))
  return new Member(directory, Postgres.at({ directory, port }), api)
}

function own(directory: string): void {
  const { uid, gid } = identity()
  if (uid !== undefined && gid !== undefined) chownSync(directory, uid, gid)
}

function run([file = '', ...args]: readonly string[], directory: string): ChildProcess {
  const stdio = [
    'ignore',
    'ignore',
    process.env['PATRONI_LOGS'] === undefined ? 'ignore' : 'inherit',
  ] as const
  return spawn(file, args, { ...identity(), cwd: directory, stdio: [...stdio] })
}
