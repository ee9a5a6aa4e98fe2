/**
 * Which node a shard belongs to: rendezvous hashing, weighted by the number of workers. Every node computes the same rank
 * from the same rows. If a node joins or leaves, only shards of this node move, and each node has a share of the shards
 * that is about that of its workers.
 *
 * The score of a node is `-workers / ln(h)`, where h between 0 and 1 is a hash of the shard and the name of the node: the
 * highest of such scores is that of each node as often as its weight says (Schindelhauer and Schomaker, "Weighted
 * distributed hash tables", 2005). Do not change the hash: nodes of different versions must agree.
 */
import { createHash } from 'node:crypto'

/** What the rank of a node depends on. A node keeps its shards over a restart, because it keeps its name. */
export interface RankedNode {
  readonly name: string
  readonly workers: number
}

/** The logarithms of the hashes, by shard and name. */
const logarithms = new Map<string, number>()

/** Returns the nodes in the order in which the shard belongs to them. The order of `nodes` does not matter. */
export function rendezvousRank<Node extends RankedNode>(
  shard: number,
  nodes: readonly Node[],
): readonly Node[] {
  return nodes
    .map((node) => ({ node, score: -node.workers / logarithmOf(shard, node.name) }))
    .toSorted((a, b) => b.score - a.score || (a.node.name < b.node.name ? -1 : 1))
    .map(({ node }) => node)
}

/** The hashes of so many pairs of a shard and a node are kept. Chosen: 256 shards and 128 nodes. */
export const rendezvousHashesMax = 32_768

function logarithmOf(shard: number, name: string): number {
  const key = `${shard}/${name}`
  const known = logarithms.get(key)
  if (known !== undefined) return known
  if (logarithms.size >= rendezvousHashesMax) logarithms.clear()
  const logarithm = Math.log(hashOf(key))
  logarithms.set(key, logarithm)
  return logarithm
}

/** Returns a number between 0 and 1, both excluded. */
function hashOf(text: string): number {
  const digest = createHash('sha256').update(text).digest()
  // 52 bits: with one more, the half would be rounded away, and the last number would be 1.
  return (digest.readUInt32BE(0) * 2 ** 20 + (digest.readUInt32BE(4) >>> 12) + 0.5) / 2 ** 52
}
