/**
 * Tells a node to leave, and waits until it has handed over its shards and its row is gone. The node itself does the work: it
 * reads its state with its next heartbeat.
 */
import { type Clock, sleep } from '../clock.ts'
import { nodeEvictedMs, nodeHeartbeatMs } from '../cluster/membership/limits.ts'
import type { ClusterRows, NodeRow, NodeTable } from '../store/node-table.ts'
import { nodeWatchMs } from './limits.ts'
import { hasMoved } from './node-report.ts'

export interface DrainOptions {
  readonly table: NodeTable
  readonly clock: Clock
  /** Of the node. */
  readonly name: string
  /** Called with the number of shards that were handed over, and of all, whenever the first changes. */
  readonly onProgress: (done: number, of: number) => void
}

/**
 * Resolves when the node has left. Rejects if there is no such node, it stands still, or no other node can take its shards;
 * the message says so and, if the node was told already, what it does now.
 */
export async function drainNode(options: DrainOptions): Promise<void> {
  const { table, clock, name } = options
  const { nodes: before } = await table.read()
  nodeNamed(name, before)
  await sleep(clock, nodeWatchMs)
  const rows = await table.read()
  const node = nodeNamed(name, rows.nodes)
  if (hasMoved(node, before) === false) throw new Error(standsStill(node))
  const others = rows.nodes.filter((other) => other !== node)
  const reasons = others.map((other) => reasonAgainst(other, before))
  if (!reasons.includes(undefined)) throw new Error(nobodyTakes(name, others, reasons))
  if (!(await table.setState(name, 'leaving'))) throw new Error(noSuchNode(name, others))
  await untilGone(options, node, ownedBy(node, rows))
}

/** Tells a node that was to leave to stay. */
export async function undrainNode({
  table,
  name,
}: Pick<DrainOptions, 'table' | 'name'>): Promise<void> {
  if (await table.setState(name, 'serving')) return
  throw new Error(noSuchNode(name, (await table.read()).nodes))
}

async function untilGone(
  { table, clock, onProgress }: DrainOptions,
  { name, boot }: NodeRow,
  shards: number,
): Promise<void> {
  let shown: number | undefined
  let last: { readonly beat: string; readonly sinceMs: number } | undefined
  for (;;) {
    const rows = await table.read()
    const node = rows.nodes.find((row) => row.boot === boot)
    if (node === undefined) {
      onProgress(shards, shards)
      return
    }
    const nowMs = clock.monotonicMs()
    if (last?.beat !== node.beat) last = { beat: node.beat, sinceMs: nowMs }
    else if (nowMs - last.sinceMs > nodeEvictedMs) throw new Error(standsStill(node))
    if (node.state !== 'leaving') throw new Error(`${quoted(name)} was told to stay`)
    const others = rows.nodes.filter((other) => other !== node)
    const reasons = others.map((other) => reasonAgainst(other, []))
    if (!reasons.includes(undefined)) {
      throw new Error(
        `${nobodyTakes(name, others, reasons)}; it goes on serving until one can: take that back with postbote node undrain`,
      )
    }
    const done = Math.max(shards - ownedBy(node, rows), 0)
    if (done !== shown) onProgress(done, shards)
    shown = done
    await sleep(clock, nodeHeartbeatMs)
  }
}

function nodeNamed(name: string, nodes: readonly NodeRow[]): NodeRow {
  const node = nodes.find((row) => row.name === name)
  if (node === undefined) throw new Error(noSuchNode(name, nodes))
  return node
}

function ownedBy({ boot }: NodeRow, { shards }: ClusterRows): number {
  return shards.filter((row) => row.boot === boot).length
}

/** Returns why a node cannot take shards; undefined if it can. */
function reasonAgainst(row: NodeRow, before: readonly NodeRow[]): string | undefined {
  if (row.state !== 'serving') return 'is leaving, too'
  if (row.address === '') return 'has no --cluster-listen'
  return hasMoved(row, before) === false ? 'stands still' : undefined
}

function nobodyTakes(
  name: string,
  others: readonly NodeRow[],
  reasons: readonly (string | undefined)[],
): string {
  const why = others.map((other, nth) => `${quoted(other.name)} ${reasons[nth]}`).join(', ')
  return `no other node can take the shards of ${quoted(name)}: ${why === '' ? 'it is the only one' : why}`
}

function noSuchNode(name: string, nodes: readonly NodeRow[]): string {
  const names = nodes.map((row) => quoted(row.name)).join(', ')
  return `there is no node ${quoted(name)}: ${names === '' ? 'no node uses this database' : `the nodes are ${names}`}`
}

function standsStill({ name }: NodeRow): string {
  return `${quoted(name)} stands still: its server does not run or cannot reach the database, and another node takes its shards`
}

function quoted(name: string): string {
  return JSON.stringify(name)
}
