/**
 * `./scripts/rolling-upgrade [REF [REPORT]]`: upgrades servers under load from another version to that of this checkout, takes
 * them back, and says whether anything was lost or refused. The arguments are the folder of the other version, its commit and,
 * if the report is to be kept, its file.
 *
 *   directory   one server with a data directory: workers are reloaded with the other code, then it is restarted
 *   cluster     two nodes with PostgreSQL, one after the other; at each stage both are asked what they must ask each other
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { markdownTable } from '../../bench/case-table.ts'
import { TestCluster } from '../support/server/cluster.ts'
import { Postgres } from '../support/server/postgres.ts'
import type { EndingTest, TestEnd } from '../support/server/server.ts'
import { Luck } from '../support/simulation/luck.ts'
import { Balancer } from './balancer.ts'
import { upgradeDirectory } from './directory-upgrade.ts'
import type { Load } from './load.ts'
import { checkOver } from './ordered-pushes.ts'
import { checkEvents, checkKeys, checkLists, checkSessions } from './upgrade-checks.ts'
import { outcomeOf, startUpgradeLoad, type UpgradeOutcome } from './upgrade-load.ts'

const nodes = ['a', 'b']
const workers = 2
const shards = 8
const [oldFolder = '', oldCommit = '', reportFile] = process.argv.slice(2)
const newFolder = fileURLToPath(new URL('../../..', import.meta.url))
const oldMain = join(oldFolder, 'dist/src/main.js')

const outcomes: UpgradeOutcome[] = []
for (const upgrade of [
  (t: EndingTest) => upgradeDirectory(t, { old: oldFolder, new: newFolder }),
  upgradeCluster,
]) {
  const ends: TestEnd[] = []
  try {
    outcomes.push(await upgrade({ after: (end) => void ends.push(end) }))
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}
report()

async function upgradeCluster(t: EndingTest): Promise<UpgradeOutcome> {
  const postgres = await Postgres.start()
  t.after(() => postgres.remove())
  const url = await postgres.newDatabase('upgrade')
  const env = { POSTBOTE_DATABASE: url }
  commandOf('database', ['init', `--shards=${shards}`], env)
  const flags = ['--local', checkOver]
  const cluster = new TestCluster(
    t,
    { name: 'upgrade', url, env, postgres },
    { workers, flags, main: oldMain },
  )
  const balancer = new Balancer(new Luck(1))
  t.after(() => balancer.close())
  for (const name of nodes) balancer.add(name, await cluster.start(name))
  await cluster.balanced(nodes)
  const { load, hooked } = await startUpgradeLoad(t, cluster.node('a'), balancer)
  const stages: string[] = []
  const reach = async (name: string): Promise<void> => {
    await stage(cluster, load, { name, hooked })
    stages.push(name)
  }
  await reach('both nodes are old')
  for (const version of ['new', 'old'] as const) {
    const main = version === 'old' ? oldMain : undefined
    for (const name of nodes) {
      load.event = `node ${name} gets the ${version} version`
      commandOf('node', ['drain', name], env)
      assert.equal(await cluster.node(name).ended(), 0, 'a drained node ended with another code')
      const server = await cluster.node(name).restart({ main })
      cluster.remember(name, server)
      balancer.add(name, server)
      await cluster.balanced(nodes)
      await reach(`node ${name} is ${version}`)
    }
  }
  await load.end()
  return outcomeOf('two nodes with PostgreSQL', stages, load)
}

/** Runs a command of the old version. */
function commandOf(name: string, args: readonly string[], env: NodeJS.ProcessEnv): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [oldMain, name, ...args], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  })
  assert.equal(status, 0, stdout + stderr)
}

/** Asks each node what it must ask the other one. */
async function stage(
  cluster: TestCluster,
  load: Load,
  { name, hooked }: { readonly name: string; readonly hooked: number },
): Promise<void> {
  load.event = name
  // A shard that is on its way is missing from every list.
  await cluster.balanced()
  await load.recovered()
  for (const asked of nodes) {
    const server = cluster.node(asked)
    const [other = server] = cluster.nodes.filter((each) => each !== server)
    await checkLists(server, load, { nodes, workers, hooked })
    await checkKeys(server, other)
    await checkSessions(server, other)
    await checkEvents(server, nodes)
  }
  console.log(`a cluster: ${name}, and each has answered the other`)
}

function report(): void {
  const rows = outcomes.map(({ way, accepted, refused, unknown, received, violations, late }) => [
    way,
    ...[accepted, refused, unknown, received, violations.length, late.length].map(String),
  ])
  const lines = [
    '# Report of an upgrade and the way back',
    '',
    `\`./scripts/rolling-upgrade ${oldCommit}\`, Node ${process.versions.node}, ${process.platform}`,
    '',
    'A push is unknown if it has no key and its connection ended with its server: whatever of these was stored was received once.',
    '',
    ...markdownTable([
      ['way', 'accepted', 'refused', 'unknown', 'received', 'lost or wrong', 'late'],
      ...rows,
    ]),
    '',
    ...outcomes.flatMap(({ way, stages, violations, late, reasons }) => [
      `${way}: ${stages.join('; ')}.`,
      '',
      ...listOf([...reasons, ...late, ...violations]),
    ]),
  ]
  const text = lines.join('\n')
  console.log(text)
  if (reportFile !== undefined) writeFileSync(reportFile, text)
  const isBroken = outcomes.some(({ violations, refused }) => violations.length > 0 || refused > 0)
  if (isBroken) process.exitCode = 1
  else console.log('nothing was lost or refused')
}

/** A list in Markdown with an empty line after it; nothing for no lines. */
function listOf(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [...lines.map((line) => `- ${line}`), '']
}
