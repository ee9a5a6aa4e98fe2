/**
 * Remembers the nodes that the page has seen, because a node that is lost is removed from the cluster, and then the server
 * does not list it any more. It is forgotten when the page is opened again.
 */
import type { GoneNode } from '../server/node-cells.ts'
import type { NodeShape } from './shapes.ts'

/** Chosen: as many as fit into the table. The one that has been gone for the longest time is forgotten first. */
const goneMax = 20

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
