/**
 * `postbote nodes` shows the nodes of each database and the owners of its shards. `postbote node drain` moves the shards of
 * a node to the other ones, after which its server ends, and `postbote node undrain` takes that back.
 */
import { hostname } from 'node:os'
import type { PgUrl } from '../../api/pg-url.ts'
import { nodeWatchMs } from '../../cli/limits.ts'
import type { CommandCall } from '../../cli/commands/command-call.ts'
import { madeResult, printResult, tell } from '../../cli/output/print-result.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import { View } from '../../cli/output/view.ts'
import type { Config } from '../../config/config.ts'
import { sleep, waitingClock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { counted } from '../../kit/text/counted.ts'
import type { NodeTable } from '../../store/node-table.ts'
import { readCluster } from '../postgres/cluster-row.ts'
import { PgNodes } from '../postgres/pg-nodes.ts'
import { drainNode, undrainNode } from './drain-node.ts'
import { nodeLines, type NodeReport, nodeReport } from './node-report.ts'
import { databasesOf, headingOf, readClusterRows, withDatabase } from './with-databases.ts'

interface FailedDatabase {
  readonly database: string
  readonly error: string
}

/** A database that does not respond is reported, too, and then the exit code is 1. */
export async function nodes(call: CommandCall): Promise<void> {
  // What cannot be shown as asked is not read.
  View.of(call)
  const databases = databasesOf(call.config())
  const settled = await Promise.allSettled(databases.map(reportOf))
  const reports = settled.map((each, nth): NodeReport | FailedDatabase => {
    if (each.status === 'fulfilled') return each.value
    if (databases.length === 1) throw each.reason
    process.exitCode = 1
    return { database: databases[nth]?.shown ?? '', error: messageOf(each.reason) }
  })
  const known = reports.filter((each) => 'nodes' in each)
  const failed = reports.filter((each) => 'error' in each)
  const all = {
    nodes: known.flatMap((each) => each.nodes),
    shards: known.flatMap((each) => each.shards),
    failed,
  }
  printResult(call, madeResult(all), (_, view) => {
    if (view.form === 'csv') return nodeLines(all, view)
    return reports.flatMap((each, nth) => [
      ...headingOf(databases, nth),
      ...('error' in each ? [each.error] : nodeLines(each, view)),
    ])
  })
  if (View.of(call).form === 'csv') for (const { error } of failed) tell(error)
}

async function reportOf(database: PgUrl): Promise<NodeReport> {
  await withDatabase(database, readCluster)
  return withTables([database], async ([table]) => {
    if (table === undefined) return { nodes: [], shards: [] }
    const before = await table.read()
    await sleep(waitingClock, nodeWatchMs)
    return nodeReport(database.shown, before.nodes, await table.read())
  })
}

/** `argv` may begin with the name of the node. */
export async function node(
  action: 'drain' | 'undrain',
  argv: readonly string[],
  configOf: (argv: readonly string[]) => Config,
): Promise<void> {
  const [given] = argv
  const isNamed = given !== undefined && !given.startsWith('-')
  const config = configOf(isNamed ? argv.slice(1) : argv)
  const name = isNamed ? given : (config.nodeName ?? hostname())
  const databases = databasesOf(config)
  // Says what is wrong with a database that has no tables or cannot be reached.
  await readClusterRows(databases)
  await withTables(databases, async (tables) => {
    if (action === 'drain') await drain(tables, name)
    else await undrainNode(tables, name)
  })
  const done = action === 'drain' ? 'has left' : 'stays'
  process.stdout.write(`the node ${JSON.stringify(name)} ${done}\n`)
}

async function drain(tables: readonly NodeTable[], name: string): Promise<void> {
  const bar = new ProgressBar()
  const onProgress = (handedOver: number, all: number): void =>
    bar.show(`handing over ${counted(all, 'shard')}`, handedOver, all)
  try {
    await drainNode(waitingClock, tables, name, onProgress)
  } finally {
    bar.clear()
  }
}

async function withTables<Result>(
  databases: readonly PgUrl[],
  work: (tables: readonly NodeTable[]) => Promise<Result>,
): Promise<Result> {
  const tables = databases.map((database) => new PgNodes(database, 'command'))
  try {
    return await work(tables)
  } finally {
    for (const table of tables) table.close()
  }
}
