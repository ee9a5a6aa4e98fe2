/**
 * `postbote nodes` shows the nodes of a database and the owners of its shards. `postbote node drain` moves the shards of a
 * node to the other ones, after which its server ends, and `postbote node undrain` takes that back.
 */
import { hostname } from 'node:os'
import { sleep, waitingClock } from '../clock.ts'
import { type Config, ConfigError } from '../config/config.ts'
import type { NodeTable } from '../store/node-table.ts'
import { readCluster } from '../store/postgres/cluster-row.ts'
import { PgNodes } from '../store/postgres/pg-nodes.ts'
import { drainNode, undrainNode } from './drain-node.ts'
import { nodeWatchMs } from './limits.ts'
import { nodeReport } from './node-report.ts'
import { ProgressBar } from './progress-bar.ts'
import { databaseOf, withDatabase } from './with-database.ts'

export async function nodes(config: Config): Promise<void> {
  await withNodes(config, async (table) => {
    const before = await table.read()
    await sleep(waitingClock, nodeWatchMs)
    const lines = nodeReport(before.nodes, await table.read())
    process.stdout.write(`${lines.join('\n')}\n`)
  })
}

export async function node(
  argv: readonly string[],
  configOf: (argv: readonly string[]) => Config,
): Promise<void> {
  const [action, ...rest] = argv
  if (action !== 'drain' && action !== 'undrain') {
    throw new ConfigError(['postbote node: expected drain or undrain'])
  }
  const [given] = rest
  const isNamed = given !== undefined && !given.startsWith('-')
  const config = configOf(isNamed ? rest.slice(1) : rest)
  const name = isNamed ? given : (config.nodeName ?? hostname())
  await withNodes(config, async (table) => {
    if (action === 'drain') await drain(table, name)
    else await undrainNode({ table, name })
  })
  const done = action === 'drain' ? 'has left' : 'stays'
  process.stdout.write(`the node ${JSON.stringify(name)} ${done}\n`)
}

async function drain(table: NodeTable, name: string): Promise<void> {
  const bar = new ProgressBar()
  const onProgress = (handedOver: number, all: number): void =>
    bar.show(`handing over ${all} shards`, handedOver, all)
  try {
    await drainNode({ table, clock: waitingClock, name, onProgress })
  } finally {
    bar.clear()
  }
}

async function withNodes(config: Config, work: (table: NodeTable) => Promise<void>): Promise<void> {
  const database = databaseOf(config)
  // Says what is wrong with a database that has no tables or cannot be reached.
  await withDatabase(database, readCluster)
  const table = new PgNodes(database, 'command')
  try {
    await work(table)
  } finally {
    table.close()
  }
}
