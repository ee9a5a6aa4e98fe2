/** What the tables of nodes and workers show, also of nodes that are gone. Pure. */
import { formatAge, formatCount, formatMs, formatRate } from '../elements/format.ts'
import type { NodeShape, NodeShardShape, WorkerShape } from '../frame/shapes.ts'

export interface CellColumn {
  readonly title: string
  /** Classes of page.css. */
  readonly style: string
}

export interface Cell {
  readonly text: string
  /** A class that says how bad it is. */
  readonly style: string
}

export const nodeColumns: readonly CellColumn[] = [
  { title: 'Node', style: '' },
  { title: 'State', style: 'state' },
  { title: 'Shards', style: '' },
  { title: 'Heartbeat', style: 'number' },
  { title: 'Workers', style: 'number' },
  { title: 'Longest event-loop delay', style: 'number' },
  { title: 'Up', style: 'number' },
  { title: 'Version', style: '' },
]

export const workerColumns: readonly CellColumn[] = [
  { title: 'Worker', style: '' },
  { title: 'State', style: 'state' },
  { title: 'Shards', style: '' },
  { title: 'Restarts', style: 'number' },
  { title: 'Up', style: 'number' },
  { title: 'Longest event-loop delay', style: 'number' },
  { title: 'Process', style: 'number' },
]

/** A node that was listed before, and is not any more: it was lost, or it was stopped. */
export interface GoneNode {
  readonly name: string
  readonly goneS: number
}

/** Returns the cells of a row, in the order of `nodeColumns`. */
export function nodeCells(node: NodeShape): readonly Cell[] {
  const { workers, shards, uptime, version } = node
  const delays = workers.map((worker) => worker.event_loop_delay_max_ms)
  const isUnknown = workers.length === 0
  return [
    plain(node.name),
    stateCell(node.state),
    partsCell(shards),
    heartbeatCell(node),
    isUnknown ? plain(formatCount(undefined)) : partsCell(workers),
    isUnknown ? plain(formatCount(undefined)) : delayCell(Math.max(...delays)),
    plain(formatAge(uptime)),
    plain(version ?? formatCount(undefined)),
  ]
}

/** The clock is shown if it differs by more than the server warns of. */
function heartbeatCell({ heartbeat_age_ms: ageMs, clock_skew_ms: skewMs }: NodeShape): Cell {
  if (ageMs === null) return plain(formatCount(ageMs))
  const text = `${formatRate(ageMs / 1_000)} s ago`
  const differenceMs = Math.abs(skewMs ?? 0)
  if (differenceMs <= clockDifferenceMsMax) return plain(text)
  const clock = `${formatAge(differenceMs / 1_000)} ${(skewMs ?? 0) > 0 ? 'ahead' : 'behind'}`
  return { text: `${text}, clock ${clock}`, style: 'degraded' }
}

/** Chosen: work that waits so long makes a call, a poll or a delivery late for a person, too. */
const slowLoopMs = 500

/** A delay of an event loop says that it is slow, so that nobody needs to know what is usual. */
export function delayCell(ms: number | undefined): Cell {
  const text = formatMs(ms)
  return (ms ?? 0) > slowLoopMs ? { text: `${text}, slow`, style: 'degraded' } : plain(text)
}

/** As in the limits of the server, from which this program imports nothing. */
const clockDifferenceMsMax = 2_000

/** Returns the cells of a row for a node that is gone. */
export function goneCells({ name, goneS }: GoneNode): readonly Cell[] {
  const state = { text: 'gone', style: 'failing' }
  const none = plain(formatCount(undefined))
  return [plain(name), state, none, plain(`${formatAge(goneS)} ago`), none, none, none, none]
}

/**
 * Returns the cells of a row, in the order of `workerColumns`.
 *
 * @param shards - of the node
 */
export function workerCells(
  worker: WorkerShape,
  shards: readonly NodeShardShape[],
): readonly Cell[] {
  const served = shards.filter((shard) => shard.worker === worker.worker)
  const troubles = troublesOf(served)
  return [
    plain(`${worker.worker}`),
    stateCell(worker.state),
    {
      text: [
        rangesText(served.map(({ shard }) => shard)),
        ...troubles.map(({ text }) => text),
      ].join(', '),
      style: worstStyle(troubles),
    },
    { text: formatCount(worker.restarts), style: worker.restarts > 0 ? 'degraded' : '' },
    plain(formatAge(worker.uptime)),
    delayCell(worker.event_loop_delay_max_ms),
    plain(worker.pid === null ? formatCount(undefined) : `${worker.pid}`),
  ]
}

/** For example `0–3, 7`. */
export function rangesText(numbers: readonly number[]): string {
  const ranges: { readonly first: number; last: number }[] = []
  for (const number of numbers) {
    const range = ranges.at(-1)
    if (range?.last === number - 1) range.last = number
    else ranges.push({ first: number, last: number })
  }
  if (ranges.length === 0) return formatCount(undefined)
  return ranges
    .map(({ first, last }) => (first === last ? `${first}` : `${first}–${last}`))
    .join(', ')
}

function plain(text: string): Cell {
  return { text, style: '' }
}

function stateCell(state: string): Cell {
  return { text: state, style: styleOf(state) }
}

const styles: Readonly<Record<string, string>> = {
  serving: 'healthy',
  starting: 'degraded',
  leaving: 'degraded',
  ending: 'degraded',
  checking: 'degraded',
}

function styleOf(state: string): string {
  return styles[state] ?? 'failing'
}

/** For example `4`, or `4, 1 down`. */
function partsCell(parts: readonly { readonly state: string }[]): Cell {
  const troubles = troublesOf(parts)
  return {
    text: [formatCount(parts.length), ...troubles.map(({ text }) => text)].join(', '),
    style: worstStyle(troubles),
  }
}

/** How many of the parts are in each state that is not `serving`. */
function troublesOf(parts: readonly { readonly state: string }[]): readonly Cell[] {
  const counts = new Map<string, number>()
  for (const { state } of parts) {
    if (state !== 'serving') counts.set(state, (counts.get(state) ?? 0) + 1)
  }
  return Array.from(counts, ([state, count]) => ({
    text: `${formatCount(count)} ${state}`,
    style: styleOf(state),
  }))
}

function worstStyle(troubles: readonly Cell[]): string {
  const isFailing = troubles.some(({ style }) => style === 'failing')
  return isFailing ? 'failing' : (troubles[0]?.style ?? '')
}

/** Chosen: as many as fit into the table. The one that has been gone for the longest time is forgotten first. */
const goneMax = 20

/**
 * Remembers the nodes that the page has seen, because a node that is lost is removed from the cluster, and then the server
 * does not list it any more. It is forgotten when the page is opened again.
 */
export class SeenNodes {
  /** When each node was listed last. */
  readonly #seen = new Map<string, number>()

  /** Returns the nodes that are gone. A node without a database does not know, so there are none while it responds. */
  add(nodes: readonly NodeShape[], nowMs: number): readonly GoneNode[] {
    for (const { name } of nodes) {
      this.#seen.delete(name)
      this.#seen.set(name, nowMs)
    }
    if (nodes.every(({ state }) => state === 'no database')) return []
    const listed = new Set(nodes.map(({ name }) => name))
    const gone = [...this.#seen].filter(([name]) => !listed.has(name))
    for (const [name] of gone.slice(0, -goneMax)) this.#seen.delete(name)
    return gone.slice(-goneMax).map(([name, atMs]) => ({ name, goneS: (nowMs - atMs) / 1_000 }))
  }
}
