/**
 * `startServer` for `npm run test:clients-on-cluster`: three nodes of two workers with the flags of the test, a PostgreSQL
 * server for them, and in front of them nginx, which draws the node of each request. The test gets a `Server` whose addresses
 * are those of nginx; its processes and its output are those of the first node. If `TEST_CLUSTER_LOGS` names a directory, the
 * logs of all nodes are written there at the end.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startNginxBalancer } from '../programs/balancer.ts'
import { startBalancedCluster } from './cluster.ts'
import { postbote } from '../programs/postbote.ts'
import { Postgres } from './postgres.ts'
import type { EndingTest, Server, ServerOptions, TestEnd } from './server.ts'

/** As many as a data directory has by default. */
const shards = 8

export async function startServer(t: EndingTest, options: ServerOptions = {}): Promise<Server> {
  const { flags = [], data, dir } = options
  assert(data === undefined && dir === undefined, 'a cluster has no data directory')
  const ends: TestEnd[] = []
  // What was started last ends first.
  t.after(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const owner: EndingTest = { after: (end) => void ends.push(end) }
  const postgres = await Postgres.start()
  owner.after(() => postgres.remove())
  const name = 'clients'
  const url = await postgres.newDatabase(name)
  const env = { ...options.env, POSTBOTE_DATABASE: url }
  const { code, output } = await postbote(['database', 'init', `--shards=${shards}`], env)
  assert.equal(code, 0, output)
  const cluster = await startBalancedCluster(
    owner,
    { name, url, env, postgres },
    { flags, workers: 2 },
  )
  const logs = process.env['TEST_CLUSTER_LOGS']
  if (logs !== undefined) {
    owner.after(async () => {
      for (const node of cluster.nodes)
        writeFileSync(join(logs, `${node.primaryPid}`), node.output())
    })
  }
  const { bot, private: own } = await startNginxBalancer(owner, cluster.nodes, { isRandom: true })
  return cluster.node('a').reachedAt({ bot, private: own })
}
