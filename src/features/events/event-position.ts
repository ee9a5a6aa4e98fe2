/**
 * Where a reader of events is, as text: what it sends as Last-Event-ID. Pure.
 *
 *   1795425367434                        on one machine: the id of the last event
 *   east:1795425367434,west:1795425369   in a cluster: that of each node
 *
 * Each node finds its own part. A node that is not named has joined later, so all of its events are new to the reader.
 */
import { PostboteError } from '../../kit/errors.ts'

const onePosition = /^\d{1,15}$/
const positions = /^[\w.-]{1,63}:\d{1,15}(?:,[\w.-]{1,63}:\d{1,15})*$/

/**
 * Returns the id after which a reader goes on.
 *
 * @param text - the position; `0` is before all events of all nodes
 * @param node - the name of this server; undefined if it has none
 * @throws BAD_REQUEST if this server can have sent no such position
 */
export function idInPosition(text: string, node: string | undefined): number {
  if (text === '0' || (node === undefined && onePosition.test(text))) return Number(text)
  if (node === undefined || !positions.test(text)) {
    const example = node === undefined ? '1795425367434' : `${node}:1795425367434`
    const detail = `expected the position of a reader of events, such as ${example}, or 0`
    throw new PostboteError('BAD_REQUEST', { detail })
  }
  const own = text.split(',').find((part) => part.startsWith(`${node}:`))
  return own === undefined ? 0 : Number(own.slice(node.length + 1))
}

/** A stream of events keeps the positions of at most this many nodes. Chosen: ten times as many as a large cluster has. */
export const eventPositionNodesMax = 100

/** Returns the id of each node that a position names. The position of a server without a name, and 0, name none. */
export function idsInPosition(text: string): Map<string, number> {
  const parts = positions.test(text) ? text.split(',').map((part) => part.split(':')) : []
  const ids = parts.map(([node = '', id]): [string, number] => [node, Number(id)])
  // Nodes that are gone for good stay in the positions of their readers. They have the lowest ids.
  const lowest = new Set(ids.toSorted(([, a], [, b]) => b - a).slice(eventPositionNodesMax))
  return new Map(ids.filter((each) => !lowest.has(each)))
}

/** Returns a position. The name of the only server without one is ''. */
export function eventPosition(ids: ReadonlyMap<string, number>): string {
  return Array.from(ids, ([node, id]) => (node === '' ? `${id}` : `${node}:${id}`)).join()
}
