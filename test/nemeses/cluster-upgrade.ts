/**
 * The upgrade of two nodes with PostgreSQL, and the way back, under load, as docs/run/cluster.md describes it: one node after the
 * other is drained and started again with the other code. Half of the clients reach the nodes through haproxy and half through
 * nginx, with the documented configurations, and no client may notice. At each stage both nodes are asked what they must ask each other.
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { run } from '../support/kit/child-process.ts'
import { startHaproxyBalancer, startNginxBalancer } from '../support/programs/balancer.ts'
import { haproxyObstacle } from '../support/programs/haproxy.ts'
import { nginxObstacle } from '../support/programs/nginx.ts'
import { TestCluster } from '../support/server/cluster.ts'
import { Postgres } from '../support/server/postgres.ts'
import type { EndingTest } from '../support/server/server.ts'
import { checkOver } from './ordered-pushes.ts'
import { checkEvents, checkKeys, checkLists, checkSessions } from './upgrade-checks.ts'
import { UpgradeLoad, type UpgradeOutcome } from './upgrade-load.ts'

const nodes = ['a', 'b']
const workers = 2
const shards = 8
const newMain = fileURLToPath(new URL('../../src/main.js', import.meta.url))

const balancers = [
  ['haproxy', haproxyObstacle(), startHaproxyBalancer],
  ['nginx', nginxObstacle(), startNginxBalancer],
] as const

/**
 * Upgrades two nodes and takes them back.
 *
 * @param oldMain - the entry file of the old version
 */
export async function upgradeCluster(
  t: EndingTest,
  oldMain: string,
): Promise<readonly UpgradeOutcome[]> {
  const postgres = await Postgres.start()
  t.after(() => postgres.remove())
  const url = await postgres.newDatabase('upgrade')
  const env = { POSTBOTE_DATABASE: url }
  await commandOf(oldMain, ['database', 'init', `--shards=${shards}`], env)
  const cluster = new TestCluster(
    t,
    { name: 'upgrade', url, env, postgres },
    { workers, flags: ['--local', checkOver], main: oldMain },
  )
  for (const name of nodes) await cluster.start(name)
  await cluster.balanced(nodes)
  const loads = new Map<string, UpgradeLoad>()
  const logs: (() => string)[] = []
  for (const [name, obstacle, start] of balancers) {
    assert.equal(obstacle, undefined)
    const balancer = await start(t, cluster.nodes)
    logs.push(() => balancer.log())
    const entrance = cluster.node('a').reachedAt(balancer)
    loads.set(name, await UpgradeLoad.start(t, entrance, loads.size + 1))
  }
  const begin = (step: string): void => {
    for (const load of loads.values()) load.begin(step)
  }
  const reach = async (stage: string): Promise<void> => {
    begin(stage)
    await checkStage(cluster, [...loads.values()])
    console.log(`a cluster: ${stage}, and each has answered the other`)
  }
  await reach('both nodes are old')
  for (const version of ['new', 'old'] as const) {
    const [before, after] = version === 'new' ? [oldMain, newMain] : [newMain, oldMain]
    for (const name of nodes) {
      begin(`node ${name} is drained`)
      await commandOf(before, ['node', 'drain', name], env)
      assert.equal(await cluster.node(name).ended(), 0, 'a drained node ended with another code')
      begin(`node ${name} starts with the ${version} version`)
      cluster.remember(name, await cluster.node(name).restart({ main: after }))
      await cluster.balanced(nodes)
      await reach(`node ${name} is ${version}`)
    }
  }
  const ends = Array.from(loads, ([name, load]) => load.end(`Two nodes behind ${name}`))
  const outcomes = await Promise.all(ends)
  // What a balancer says of a failure names the node and the reason.
  const failures = logs.flatMap((log) => log().split('\n').filter(isOfFailure))
  if (failures.length > 0) console.log(failures.join('\n'))
  return outcomes
}

/** Whether a response is none that a client expects. */
function isOfFailure(line: string): boolean {
  return /(?:GET|POST) \S+ (?:-1|50\d) /.test(line)
}

/** Runs a command of one of the versions. The clients go on meanwhile. */
async function commandOf(
  main: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  await run(process.execPath, [main, ...args], { env: { ...process.env, ...env } })
}

/** Asks each node what it must ask the other one. */
async function checkStage(cluster: TestCluster, loads: readonly UpgradeLoad[]): Promise<void> {
  // A shard that is on its way is missing from every list.
  await cluster.balanced(nodes)
  await Promise.all(loads.map(({ clients }) => clients.recovered()))
  const clients = { ledgers: loads.flatMap((load) => load.clients.ledgers) }
  const hooked = loads.reduce((sum, load) => sum + load.hooked, 0)
  for (const asked of nodes) {
    const server = cluster.node(asked)
    const [other = server] = cluster.nodes.filter((each) => each !== server)
    await checkLists(server, { clients, hooked }, { nodes, workers })
    await checkKeys(server, other)
    await checkSessions(server, other)
    await checkEvents(server, nodes)
  }
}
