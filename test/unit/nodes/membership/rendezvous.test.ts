import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type RankedNode,
  rendezvousHashesMax,
  rendezvousRank,
} from '../../../../src/nodes/membership/rendezvous.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { Luck } from '../../../support/simulation/luck.ts'

const manyShards = 4_096

function nodesOf(...names: readonly string[]): readonly RankedNode[] {
  return names.map((name) => ({ name, workers: 2 }))
}

function drawnNodes(luck: Luck): readonly RankedNode[] {
  return Array.from({ length: luck.int(1, 8) }, (_, nth) => ({
    name: `${luck.pick(['node', 'pb-', 'eu-west.'])}${nth}-${luck.int(0, 1_000)}`,
    workers: luck.int(1, 16),
  }))
}

function firstOf(shard: number, nodes: readonly RankedNode[]): string {
  return rendezvousRank(shard, nodes)[0]?.name ?? ''
}

/** Returns how many of the shards each node is the first for. */
function counts(shards: number, nodes: readonly RankedNode[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>(nodes.map(({ name }) => [name, 0]))
  for (let shard = 0; shard < shards; shard++) {
    const first = firstOf(shard, nodes)
    found.set(first, (found.get(first) ?? 0) + 1)
  }
  return found
}

test('64 shards are balanced within reason among three nodes, whatever their names', () => {
  const worst: number[] = []
  for (let seed = 0; seed < 100; seed++) {
    const found = [...counts(64, nodesOf(`a${seed}`, `b${seed}`, `c${seed}`)).values()]
    worst.push(Math.max(...found))
    assert(
      found.every((count) => count >= 8 && count <= 38),
      found.join(),
    )
  }
  // 21.3 each, with a standard deviation of 3.8.
  const mean = worst.reduce((sum, count) => sum + count, 0) / worst.length
  assert(mean < 28, `${mean}`)
})

test('each node has a share of the shards that is that of its workers', () => {
  const nodes = [1, 2, 4, 8].map((workers) => ({ name: `node${workers}`, workers }))
  for (const [name, count] of counts(manyShards, nodes)) {
    const expected = (manyShards * Number(name.slice(4))) / 15
    // Five standard deviations.
    assert(Math.abs(count - expected) < 5 * Math.sqrt(expected), `${name}: ${count}`)
  }
})

test('a node that joins or leaves changes nothing in the order of the other ones', () => {
  for (let seed = 0; seed < drawnRuns(200); seed++) {
    const luck = new Luck(seed)
    const nodes = drawnNodes(luck)
    const gone = luck.pick(nodes)
    const others = nodes.filter((node) => node !== gone)
    for (let shard = 0; shard < 64; shard++) {
      const before = rendezvousRank(shard, nodes).filter((node) => node !== gone)
      assert.deepEqual(rendezvousRank(shard, others), before, `seed ${seed}`)
    }
  }
})

test('the order of the rows does not matter', () => {
  for (let seed = 0; seed < drawnRuns(200); seed++) {
    const luck = new Luck(seed)
    const nodes = drawnNodes(luck)
    const mixed = nodes
      .map((node) => ({ node, at: luck.next() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ node }) => node)
    for (let shard = 0; shard < 64; shard++) {
      assert.deepEqual(rendezvousRank(shard, mixed), rendezvousRank(shard, nodes), `seed ${seed}`)
    }
  }
})

test('more workers of one node only move shards to it', () => {
  for (let shard = 0; shard < 1_000; shard++) {
    const before = firstOf(shard, nodesOf('a', 'b', 'c'))
    const after = firstOf(shard, [...nodesOf('a', 'b'), { name: 'c', workers: 4 }])
    assert(after === before || after === 'c', `shard ${shard}: ${before} ${after}`)
  }
})

test('a node without workers comes after all others, and names decide between two of them', () => {
  const nodes = [
    { name: 'z', workers: 0 },
    { name: 'a', workers: 0 },
    { name: 'm', workers: 1 },
  ]
  for (let shard = 0; shard < 64; shard++) {
    const names = rendezvousRank(shard, nodes).map(({ name }) => name)
    assert.deepEqual(names, ['m', 'a', 'z'])
  }
})

function ranks(): string[] {
  return [0, 1, 2, 63, 255].map((shard) =>
    rendezvousRank(shard, [...nodesOf('a', 'b'), { name: 'c', workers: 5 }])
      .map(({ name }) => name)
      .join(''),
  )
}

test('the rank is what it was in every version, even after more nodes than are remembered', () => {
  const before = ranks()
  assert.deepEqual(before, ['abc', 'cba', 'bca', 'acb', 'cab'])
  for (let nth = 0; nth <= rendezvousHashesMax; nth++) rendezvousRank(nth, nodesOf('x'))
  assert.deepEqual(ranks(), before)
})
