/**
 * `postbote nodes` shows the nodes of each database and the owners of its shards. `postbote node drain` moves the shards of
 * a node to the other ones, after which its server ends, and `postbote node undrain` takes that back.
 */
import { hostname } from 'node:os'
import type { PgUrl } from '../../api/pg-url.ts'
import { nodeWatchMs } from '../../cli/limits.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import type { Config } from '../../config/config.ts'
import { sleep, waitingClock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { counted } from '../../kit/text/counted.ts'
import type { NodeTable } from '../../store/node-table.ts'
import { readCluster } from '../postgres/cluster-row.ts'
import { PgNodes } from '../postgres/pg-nodes.ts'
import { drainNode, undrainNode } from './drain-node.ts'
import { nodeReport } from './node-report.ts'
import { databasesOf, headingOf, readClusterRows, withDatabase } from './with-databases.ts'

/** A database that does not respond is reported, too, and then the exit code is 1. */
export async function nodes(config: Config): Promise<void> {
  const databases = databasesOf(config)
  const reports = await Promise.allSettled(databases.map(reportOf))
  for (const [nth, report] of reports.entries()) {
    if (report.status === 'rejected') {
      if (databases.length === 1) throw report.reason
      process.exitCode = 1
    }
    const lines = report.status === 'fulfilled' ? report.value : [messageOf(report.reason)]
    process.stdout.write(`${[...headingOf(databases, nth), ...lines].join('\n')}\n`)
  }
}

async function reportOf(database: PgUrl): Promise<readonly string[]> {
  await withDatabase(database, readCluster)
  return withTables([database], async ([table]) => {
    if (table === undefined) return []
    const before = await table.read()
    await sleep(waitingClock, nodeWatchMs)
    return nodeReport(before.nodes, await table.read())
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
