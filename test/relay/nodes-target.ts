/** Two nodes of a cluster, each behind a proxy of its own in front of the database. */
import assert from 'node:assert/strict'
import { until } from '../support/kit/until.ts'
import { map } from '../support/server/bot-of.ts'
import { signalAll } from '../support/server/database.ts'
import { startBalancedCluster, type TestCluster } from '../support/server/cluster.ts'
import { Postgres } from '../support/server/postgres.ts'
import { databaseAt, initialize } from '../support/server/postgres-shards.ts'
import type { EndingTest, Server } from '../support/server/server.ts'
import { HoldingProxy } from './holding-proxy.ts'
import type { RelayTarget, SyncEdge } from './relay-target.ts'

const name = 'relays'
const nodes = ['a', 'b']
const holds = { begins: 'statement', ended: 'response' } as const
const restoredMsMax = 60_000

export class NodesTarget implements RelayTarget {
  readonly victims = ['worker of a node', 'node', 'frozen node']
  readonly #cluster: TestCluster
  readonly #proxies: ReadonlyMap<string, HoldingProxy>
  #down: { readonly name: string; readonly server: Server; readonly isFrozen: boolean } | undefined

  private constructor(cluster: TestCluster, proxies: ReadonlyMap<string, HoldingProxy>) {
    this.#cluster = cluster
    this.#proxies = proxies
  }

  static async start(
    t: EndingTest,
    { flags }: { readonly flags: readonly string[] },
  ): Promise<NodesTarget> {
    const postgres = await Postgres.start({})
    t.after(() => postgres.remove())
    const url = await postgres.newDatabase(name)
    await initialize(databaseAt(url), map.shards)
    const proxies = new Map<string, HoldingProxy>()
    for (const node of nodes) proxies.set(node, await HoldingProxy.start(t, postgres.port))
    const envOf = (node: string): { readonly POSTBOTE_DATABASE: string } => {
      const through = new URL(url)
      through.port = String(proxies.get(node)?.port)
      return { POSTBOTE_DATABASE: through.href }
    }
    const database = { name, url, env: { POSTBOTE_DATABASE: url }, postgres }
    const cluster = await startBalancedCluster(t, database, { nodes, flags, envOf })
    return new NodesTarget(cluster, proxies)
  }

  server(): Server {
    return this.#cluster.any()
  }

  servers(): readonly Server[] {
    return this.#cluster.nodes
  }

  async holdSync(edge: SyncEdge, text: string): Promise<void> {
    const all = [...this.#proxies.values()]
    await Promise.race(all.map((proxy) => proxy.holdNext(holds[edge], text)))
  }

  letPass(): void {
    for (const proxy of this.#proxies.values()) proxy.letAllPass()
  }

  async kill(victim: string, botId: number): Promise<void> {
    const owner = (await this.#cluster.owners())[map.shardOf(botId)] ?? ''
    const server = this.#cluster.node(owner)
    if (victim !== 'worker of a node') {
      const isFrozen = victim === 'frozen node'
      this.#down = { name: owner, server: this.#cluster.forget(owner), isFrozen }
      if (isFrozen) signalAll(server.pids(), 'SIGSTOP')
      else await server.kill()
      // The other one takes over. What was frozen goes on beside it.
      await until(async () => {
        const owners = await this.#cluster.owners()
        return owners.every((each) => each !== '' && each !== owner)
      }, restoredMsMax)
      return
    }
    const pid = server.workerPid()
    process.kill(pid, 'SIGKILL')
    await until(() => !server.workerPids().includes(pid))
  }

  /** Shards may still move back. */
  async restore(): Promise<void> {
    if (this.#down !== undefined) {
      const { name: node, server, isFrozen } = this.#down
      if (isFrozen) signalAll(server.pids(), 'SIGCONT')
      this.#cluster.remember(node, isFrozen ? server : await server.restart())
      this.#down = undefined
    }
    for (const node of this.#cluster.nodes) {
      await until(async () => (await node.admin('GET', '/readyz')).status === 200, restoredMsMax)
    }
    assert.equal(this.#cluster.nodes.length, nodes.length)
  }
}
