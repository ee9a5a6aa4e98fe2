/** Nodes of one cluster, all on this machine. The load goes to the first one, which forwards what belongs to the others. */
import { randomBytes } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePorts } from '../test/support/kit/port.ts'
import type { CaseContext } from './contestant.ts'
import type { PostgresPair } from './postgres-pair.ts'
import { type ServerOptions, ServerUnderTest } from './server-under-test.ts'
import { until } from './until.ts'

/** Nodes begin to hand shards over when they have been the same for 10 s. */
const balancedMsMax = 60_000
const settledMs = 3_000
const lookPauseMs = 200

export interface ClusterNodesOptions extends ServerOptions {
  readonly database: PostgresPair
  readonly shards: number
  readonly nodes: number
}

/** Returns the first node, once every node has its shards. */
export async function startNodes(
  context: CaseContext,
  { database, shards, nodes, ...options }: ClusterNodesOptions,
): Promise<ServerUnderTest> {
  const flags = [...database.flags(shards), ...(options.flags ?? [])]
  const { workers = context.workers } = options
  if (nodes === 1) return ServerUnderTest.start(context, { ...options, flags, others: [database] })
  const directory = await mkdtemp(join(context.directory, 'nodes-'))
  const keyFile = join(directory, 'cluster.key')
  await writeFile(keyFile, randomBytes(32).toString('hex'), { mode: 0o600 })
  const adminKeyFile = join(directory, 'admin.key')
  await writeFile(adminKeyFile, randomBytes(32).toString('hex'), { mode: 0o600 })
  const start = async (
    nth: number,
    others: readonly ServerUnderTest[],
  ): Promise<ServerUnderTest> => {
    const own = join(directory, `${nth}`)
    await mkdir(own, { mode: 0o700 })
    await copyFile(adminKeyFile, join(own, 'admin.key'))
    const listen = `--cluster-listen=127.0.0.1:${await freePorts(workers)}`
    return ServerUnderTest.start(context, {
      ...options,
      directory: own,
      flags: [...flags, `--node-name=${nth}`, listen, `--cluster-key-file=${keyFile}`],
      others: [database, ...others],
    })
  }
  const others: ServerUnderTest[] = []
  for (let nth = 1; nth < nodes; nth++) others.push(await start(nth, []))
  const first = await start(0, others)
  await balanced(database, nodes)
  return first
}

/** Resolves when all nodes have shards and none has moved for a while. */
async function balanced(database: PostgresPair, nodes: number): Promise<void> {
  let before = ''
  let sinceMs = performance.now()
  await until(async () => {
    await new Promise((resolve) => setTimeout(resolve, lookPauseMs))
    const owners = await database.owners()
    const now = owners.join(' ')
    if (now !== before) sinceMs = performance.now()
    before = now
    return new Set(owners).size === nodes && performance.now() - sinceMs > settledMs
  }, balancedMsMax)
}
