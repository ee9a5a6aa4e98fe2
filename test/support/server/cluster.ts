/**
 * Nodes of one cluster on this machine: each a real server, on the ports of the loopback interface, with a
 * PostgreSQL database between them.
 *
 *     const cluster = await startBalancedCluster(t, database)
 *     const bots = await botsOfAllShards(cluster.node('a'))
 *     await cluster.node('a').kill()
 *     cluster.any()      // one of the nodes that were not killed, in turn
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rendezvousRank } from '../../../src/nodes/membership/rendezvous.ts'
import { ShardMap } from '../../../src/process/shard-map.ts'
import { botIdMin } from '../../../src/kit/limits.ts'
import type { TestDatabase } from './database.ts'
import { joinTogether } from './join-together.ts'
import { freePorts } from '../kit/port.ts'
import { type EndingTest, type Server, startSingleServer } from './server.ts'
import { temporaryDirectory } from '../kit/temporary-directory.ts'
import { until } from '../kit/until.ts'

const balancedMsMax = 60_000

export interface ClusterOptions {
  /** Names of nodes. */
  readonly nodes?: readonly string[]
  readonly flags?: readonly string[]
  /** Of each node. Default: 1, because a start of a second one takes half a second of CPU. */
  readonly workers?: number
  /** The other databases, if there are several. */
  readonly others?: readonly TestDatabase[]
  /** The environment of a node. Default: that of the database. */
  readonly envOf?: (name: string) => NodeJS.ProcessEnv
  /** The entry file of another version of the server. */
  readonly main?: string
}

export class TestCluster {
  readonly database: TestDatabase
  readonly #t: EndingTest
  readonly #flags: readonly string[]
  readonly #workers: number
  readonly #main: string | undefined
  readonly #envOf: (name: string) => NodeJS.ProcessEnv
  readonly #others: readonly TestDatabase[]
  readonly #keys: { readonly admin: string; readonly cluster: string }
  readonly #nodes = new Map<string, Server>()
  #turn = 0

  constructor(t: EndingTest, database: TestDatabase, options: Omit<ClusterOptions, 'nodes'> = {}) {
    const { flags = [], workers = 1, others = [], envOf = () => database.env, main } = options
    this.#t = t
    this.database = database
    this.#workers = workers
    this.#main = main
    this.#flags = flags
    this.#envOf = envOf
    this.#others = others
    const directory = temporaryDirectory(t)
    this.#keys = { admin: join(directory, 'admin'), cluster: join(directory, 'cluster') }
    for (const file of Object.values(this.#keys)) {
      writeFileSync(file, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
    }
  }

  get nodes(): readonly Server[] {
    return [...this.#nodes.values()]
  }

  /** Starts a node with a new data directory. */
  async start(name: string, flags: readonly string[] = []): Promise<Server> {
    const server = await startSingleServer(this.#t, {
      workers: this.#workers,
      main: this.#main,
      env: this.#envOf(name),
      adminKeyFile: this.#keys.admin,
      flags: [...(await this.flagsOf(name)), ...flags],
    })
    this.#nodes.set(name, server)
    return server
  }

  /** Returns the flags with which a node of this name joins. */
  async flagsOf(name: string): Promise<readonly string[]> {
    return [
      `--node-name=${name}`,
      `--cluster-listen=127.0.0.1:${await freePorts(this.#workers)}`,
      `--cluster-key-file=${this.#keys.cluster}`,
      ...this.#flags,
    ]
  }

  /** Returns the flags of a whole server in a new directory, for a start that is refused. */
  async refusedFlags(name: string): Promise<readonly string[]> {
    return [
      `--dir=${join(temporaryDirectory(this.#t), 'data')}`,
      `--workers=${this.#workers}`,
      '--http-ip-address=127.0.0.1',
      '--http-port=0',
      '--admin-port=0',
      `--admin-key-file=${this.#keys.admin}`,
      ...(await this.flagsOf(name)),
    ]
  }

  /** Whether clients use this node. */
  has(name: string): boolean {
    return this.#nodes.has(name)
  }

  node(name: string): Server {
    const server = this.#nodes.get(name)
    assert(server !== undefined, `there is no node ${name}`)
    return server
  }

  /** Clients use this node no more. */
  forget(name: string): Server {
    const server = this.node(name)
    this.#nodes.delete(name)
    return server
  }

  /** Clients use this node again, which was restarted. */
  remember(name: string, server: Server): void {
    this.#nodes.set(name, server)
  }

  /** One node after the other. */
  any(): Server {
    const nodes = this.nodes
    const server = nodes[this.#turn++ % nodes.length]
    assert(server !== undefined, 'there is no node')
    return server
  }

  /** Returns the names of the owners, by database and shard. */
  async owners(): Promise<readonly string[]> {
    return (await this.#shards()).map(({ owner }) => owner)
  }

  /**
   * Resolves when each shard has the owner among these nodes that it belongs to, so that none moves any more, and when
   * every node reaches all of them. Default: all nodes that clients use.
   */
  async balanced(names: readonly string[] = [...this.#nodes.keys()]): Promise<void> {
    const ranked = names.map((name) => ({ name, workers: this.#workers }))
    await until(async () => {
      const shards = await this.#shards()
      return shards.every(({ shard, owner }) => owner === rendezvousRank(shard, ranked)[0]?.name)
    }, balancedMsMax)
    await until(() => this.#isServed(), balancedMsMax)
  }

  /** Whether every node reaches every shard: the bots that it asks for need not exist. */
  async #isServed(): Promise<boolean> {
    const { length: shards } = await this.#shards()
    const map = new ShardMap({ shards, workers: 1 })
    const ids = new Map<number, number>()
    for (let botId = botIdMin; ids.size < shards; botId++) ids.set(map.shardOf(botId), botId)
    const asked = this.nodes.flatMap((node) =>
      [...ids.values()].map((botId) => node.admin('GET', `/v1/bots/${botId}`)),
    )
    return (await Promise.all(asked)).every(({ status }) => status === 200 || status === 404)
  }

  async #shards(): Promise<readonly OwnedShard[]> {
    const all = await Promise.all([this.database, ...this.#others].map(shardsIn))
    return all.flat()
  }
}

interface OwnedShard {
  readonly shard: number
  /** The name of the node that has it; empty if none has. */
  readonly owner: string
}

export async function startCluster(
  t: EndingTest,
  database: TestDatabase,
  { nodes = ['a', 'b', 'c'], ...options }: ClusterOptions = {},
): Promise<TestCluster> {
  const cluster = new TestCluster(t, database, options)
  for (const name of nodes) await cluster.start(name)
  return cluster
}

/** The same with nodes that join together, and each shard has its owner when this resolves. */
export async function startBalancedCluster(
  t: EndingTest,
  database: TestDatabase,
  { nodes = ['a', 'b', 'c'], ...options }: ClusterOptions = {},
): Promise<TestCluster> {
  const cluster = new TestCluster(t, database, options)
  await joinTogether([database, ...(options.others ?? [])], () =>
    Promise.all(nodes.map((name) => cluster.start(name))),
  )
  // In this order, not in that in which they were ready.
  for (const name of nodes) cluster.remember(name, cluster.forget(name))
  await cluster.balanced(nodes)
  return cluster
}

async function shardsIn({ postgres, name }: TestDatabase): Promise<readonly OwnedShard[]> {
  const rows = await postgres.query(
    'SELECT s.shard, coalesce(n.name, $$$$) AS name FROM shard s LEFT JOIN node n USING (boot) ORDER BY shard',
    name,
  )
  return rows.map((row) => ({ shard: Number(row['shard']), owner: String(row['name']) }))
}
