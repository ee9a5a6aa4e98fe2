/**
 * Tells a node to leave all databases, and waits until it has handed over its shards and its rows are gone. The node itself
 * does the work: it reads its states with its next heartbeats.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import { nodeEvictedMs, nodeHeartbeatMs } from '../membership/limits.ts'
import type { ClusterRows, NodeRow, NodeTable } from '../../store/node-table.ts'
import { nodeWatchMs } from '../../cli/limits.ts'
import { hasMoved } from './node-report.ts'

/** Called with the number of shards that were handed over, and of all, whenever the first changes. */
type OnProgress = (done: number, of: number) => void

/** The node in one database. */
interface Draining {
  readonly table: NodeTable
  readonly node: NodeRow
  /** How many shards it had. */
  readonly shards: number
}

/**
 * Resolves when the node has left. Rejects if there is no such node, it stands still, or no other node can take its shards;
 * the message says so and, if the node was told already, what it does now.
 *
 * @param tables - one for each database
 */
export async function drainNode(
  clock: Clock,
  tables: readonly NodeTable[],
  name: string,
  onProgress: OnProgress,
): Promise<void> {
  const before = await readAll(tables)
  assertNamed(name, before)
  await sleep(clock, nodeWatchMs)
  const now = await readAll(tables)
  assertNamed(name, now)
  const drained = tables.flatMap((table, nth): readonly Draining[] => {
    const rows = now[nth]
    const node = rows?.nodes.find((row) => row.name === name)
    if (rows === undefined || node === undefined) return []
    assertMayLeave(node, rows, before[nth]?.nodes ?? [])
    return [{ table, node, shards: ownedBy(node, rows) }]
  })
  for (const { table } of drained) {
    if (!(await table.setState(name, 'leaving'))) throw new Error(noSuchNode(name, now))
  }
  const progress = new Progress(drained, onProgress)
  const ending = new AbortController()
  try {
    const { signal } = ending
    await Promise.all(drained.map((each) => untilGone(each, { clock, progress, signal })))
  } finally {
    ending.abort()
  }
}

/** Tells a node that was to leave to stay. */
export async function undrainNode(tables: readonly NodeTable[], name: string): Promise<void> {
  const told = await Promise.all(tables.map((table) => table.setState(name, 'serving')))
  if (!told.includes(true)) throw new Error(noSuchNode(name, await readAll(tables)))
}

/** Adds up what was handed over in all databases. */
class Progress {
  readonly #of: number
  readonly #done = new Map<Draining, number>()
  readonly #onProgress: OnProgress
  #shown: number | undefined

  constructor(all: readonly Draining[], onProgress: OnProgress) {
    this.#of = all.reduce((sum, { shards }) => sum + shards, 0)
    this.#onProgress = onProgress
  }

  set(part: Draining, done: number): void {
    this.#done.set(part, done)
    const sum = [...this.#done.values()].reduce((a, b) => a + b, 0)
    if (sum !== this.#shown) this.#onProgress(sum, this.#of)
    this.#shown = sum
  }
}

function readAll(tables: readonly NodeTable[]): Promise<readonly ClusterRows[]> {
  return Promise.all(tables.map((table) => table.read()))
}

function assertMayLeave(node: NodeRow, { nodes }: ClusterRows, before: readonly NodeRow[]): void {
  if (hasMoved(node, before) === false) throw new Error(standsStill(node))
  const problem = nobodyTakes(node, nodes, before)
  if (problem !== undefined) throw new Error(problem)
}

interface Watch {
  readonly clock: Clock
  readonly progress: Progress
  /** Aborted if the wait has failed for another database. */
  readonly signal: AbortSignal
}

async function untilGone(part: Draining, { clock, progress, signal }: Watch): Promise<void> {
  const { table, node: first, shards } = part
  let last: { readonly beat: string; readonly sinceMs: number } | undefined
  while (!signal.aborted) {
    const rows = await table.read()
    const node = rows.nodes.find((row) => row.name === first.name)
    // A node that was evicted meanwhile goes on leaving when it joins again. Any other one was started after the end.
    const isOther = node?.boot !== first.boot
    if (node === undefined || (isOther && node.state === 'serving')) {
      progress.set(part, shards)
      return
    }
    const nowMs = clock.monotonicMs()
    const beat = `${node.boot} ${node.beat}`
    if (last?.beat !== beat) last = { beat, sinceMs: nowMs }
    else if (nowMs - last.sinceMs > nodeEvictedMs) throw new Error(standsStill(node))
    // In its next life it is starting, before it is told again.
    if (!isOther || node.state !== 'starting') assertLeaves(node, rows.nodes)
    progress.set(part, Math.max(shards - ownedBy(node, rows), 0))
    await sleep(clock, nodeHeartbeatMs, signal)
  }
}

function assertLeaves(node: NodeRow, nodes: readonly NodeRow[]): void {
  if (node.state !== 'leaving') throw new Error(`${quoted(node.name)} was told to stay`)
  const problem = nobodyTakes(node, nodes, [])
  if (problem === undefined) return
  throw new Error(
    `${problem}; it goes on serving until one can: take that back with postbote node undrain`,
  )
}

function assertNamed(name: string, databases: readonly ClusterRows[]): void {
  const isThere = databases.some(({ nodes }) => nodes.some((row) => row.name === name))
  if (!isThere) throw new Error(noSuchNode(name, databases))
}

function ownedBy({ boot }: NodeRow, { shards }: ClusterRows): number {
  return shards.filter((row) => row.boot === boot).length
}

/** Returns why a node cannot take shards; undefined if it can. */
function reasonAgainst(row: NodeRow, before: readonly NodeRow[]): string | undefined {
  if (row.state === 'starting') return 'is still starting'
  if (row.state !== 'serving') return 'is leaving, too'
  if (row.address === '') return 'has no --cluster-listen'
  return hasMoved(row, before) === false ? 'stands still' : undefined
}

/** Returns why no other node can take the shards of a node; undefined if one can. */
function nobodyTakes(
  node: NodeRow,
  nodes: readonly NodeRow[],
  before: readonly NodeRow[],
): string | undefined {
  const others = nodes.filter((other) => other !== node)
  const reasons = others.map((other) => reasonAgainst(other, before))
  if (reasons.includes(undefined)) return undefined
  const why = others.map((other, nth) => `${quoted(other.name)} ${reasons[nth]}`).join(', ')
  return `no other node can take the shards of ${quoted(node.name)}: ${why === '' ? 'it is the only one' : why}`
}

function noSuchNode(name: string, databases: readonly ClusterRows[]): string {
  const all = databases.flatMap(({ nodes }) => nodes.map((row) => quoted(row.name)))
  const names = [...new Set(all)].join(', ')
  return `there is no node ${quoted(name)}: ${names === '' ? 'no node uses this database' : `the nodes are ${names}`}`
}

function standsStill({ name }: NodeRow): string {
  return `${quoted(name)} stands still: its server does not run or cannot reach the database, and another node takes its shards`
}

function quoted(name: string): string {
  return JSON.stringify(name)
}
