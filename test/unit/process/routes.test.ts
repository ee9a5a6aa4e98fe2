import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Routes, type RouteTable } from '../../../src/process/routes.ts'
import { ShardMap } from '../../../src/process/shard-map.ts'
import { workersMax } from '../../../src/kit/limits.ts'

const shards = 8
const map = new ShardMap({ shards, workers: 2 })

function table(owners: readonly string[], nodes: RouteTable['nodes']): RouteTable {
  return {
    boots: ['own'],
    servers: [undefined],
    nodes,
    owners: Array.from({ length: shards }, (_, shard) => ({
      shard,
      boot: owners[shard] ?? 'own',
      epoch: shard + 1,
    })),
  }
}

/** The routes in two databases: shards with an odd number are in the second one. */
function ofTwo(boots: readonly string[], nodes: RouteTable['nodes'], owners: string): RouteTable {
  return {
    boots,
    nodes,
    servers: [undefined, undefined],
    owners: Array.from(owners, (boot, shard) => ({ shard, boot, epoch: 1 })),
  }
}

const own = {
  boot: 'own',
  name: 'a',
  state: 'serving' as const,
  address: '10.0.0.1:8450',
  workers: 2,
}
const other = {
  boot: 'other',
  name: 'b',
  state: 'serving' as const,
  address: '10.0.0.2:8450',
  workers: 4,
}

test('on one machine every shard is at the worker that has its range', () => {
  const routes = new Routes(map)
  const places = Array.from({ length: shards }, (_, shard) => routes.placeOf(shard))
  assert.deepEqual(places, [0, 0, 0, 0, 1, 1, 1, 1])
  assert.deepEqual(routes.places(), [0, 1])
})

test('the groups are the shards of this node, one for each of its workers that has any', () => {
  const routes = new Routes(map)
  const [first, second] = [
    [0, 1, 2, 3],
    [4, 5, 6, 7],
  ]
  assert.deepEqual(routes.groups(), [first, second])
  routes.set(table(['other', 'own', 'other', 'own', 'other'], [own, other]))
  assert.deepEqual(routes.groups(), [
    [1, 3],
    [5, 6, 7],
  ])
  routes.set(table(['other', 'other', 'other', 'other'], [own, other]))
  assert.deepEqual(routes.groups(), [second])
  routes.set(
    table(
      Array.from({ length: shards }, () => 'other'),
      [own, other],
    ),
  )
  assert.deepEqual(routes.groups(), [])
})

test('a node that is gone is lost until it is back, unless it was told to leave', () => {
  const routes = new Routes(map)
  routes.set(table([], [own, other]))
  assert.equal(routes.lostNodes, 0)
  routes.set(table([], [own]))
  assert.equal(routes.lostNodes, 1)
  routes.set(table([], [own]))
  assert.equal(routes.lostNodes, 1, 'it is still gone')
  routes.set(table([], [own, { ...other, boot: 'next' }]))
  assert.equal(routes.lostNodes, 0, 'it has another life')
  routes.set(table([], [own, { ...other, boot: 'next', state: 'leaving' }]))
  routes.set(table([], [own]))
  assert.equal(routes.lostNodes, 0, 'it was told to leave')
})

test('shards of another node are at its workers, in the ranges that it has with its number of workers', () => {
  const routes = new Routes(map)
  assert.deepEqual(routes.set(table(['other', 'own', 'other', 'own', 'other'], [own, other])), [])
  const remote = (shard: number) => routes.remote(routes.placeOf(shard) ?? -1)
  assert.deepEqual(remote(0), { boot: 'other', address: other.address, worker: 0 })
  assert.equal(routes.placeOf(1), 0)
  assert.equal(remote(2)?.worker, 1)
  assert.equal(remote(4)?.worker, 2)
  assert.equal(routes.placeOf(7), 1)
  assert.equal(routes.epochOf(4), 5)
  assert.equal(routes.places().length, 6)
  assert(routes.isRemote(workersMax))
  assert(!routes.isRemote(workersMax - 1))
})

test('what another node knows of a shard counts until the next table, if it is newer', () => {
  const routes = new Routes(map)
  routes.set(table(['other'], [own, other]))
  const before = routes.placeOf(0)
  routes.learn(0, { boot: 'own', epoch: 1 })
  assert.equal(routes.placeOf(0), before)
  routes.learn(0, { boot: 'own', epoch: 2 })
  assert.equal(routes.placeOf(0), 0)
  assert.deepEqual(routes.ownerOf(0), { boot: 'own', epoch: 2 })
  routes.learn(0, { boot: 'other', epoch: 3 })
  assert.equal(routes.placeOf(0), before)
  routes.learn(0, { boot: 'unknown', epoch: 4 })
  assert.equal(routes.placeOf(0), undefined)
})

test('a shard that another node has is on its way until that node has answered, and anew when its owner changes', () => {
  const routes = new Routes(map)
  const [first, second] = [routes.ownerView(0), routes.ownerView(1)]
  assert(!first.isOnItsWay())
  routes.set(table(['other', ''], [own, other]))
  assert.deepEqual([first.isOnItsWay(), second.isOnItsWay()], [true, false])
  first.answered()
  assert(!first.isOnItsWay())
  // Its node has claimed it.
  first.learn({ boot: 'other', epoch: 2 })
  assert(!first.isOnItsWay())
  first.learn({ boot: 'third', epoch: 3 })
  assert(first.isOnItsWay())
  first.learn({ boot: 'own', epoch: 4 })
  assert(!first.isOnItsWay())
  assert(!routes.ownerView(undefined).isOnItsWay())
})

test('a shard whose owner is no member, or cannot be reached, is nowhere', () => {
  const routes = new Routes(map)
  routes.set(
    table(['gone', 'silent'], [own, { ...other, boot: 'silent', address: '', workers: 0 }]),
  )
  assert.equal(routes.placeOf(0), undefined)
  assert.equal(routes.placeOf(1), undefined)
  assert.equal(routes.placeOf(2), 0)
})

test('the places of a node end with its membership, and its next life has other places', () => {
  const routes = new Routes(map)
  routes.set(table(['other'], [own, other]))
  const before = routes.placeOf(0)
  assert.equal(routes.set(table(['other'], [own, other])).length, 0)
  const gone = routes.set(table(['again'], [own, { ...other, boot: 'again' }]))
  assert.equal(gone.length, other.workers)
  assert(before !== undefined && gone.includes(before))
  assert.equal(routes.remote(before), undefined)
  const after = routes.placeOf(0)
  assert(after !== undefined && !gone.includes(after))
})

test('in several databases a node has several lives, and an eviction in one ends only the places of its shards', () => {
  const routes = new Routes(map)
  const lives = ['o', 'p'].map((boot) => ({ ...other, boot }))
  routes.set(
    ofTwo(['a', 'b'], [...lives, { ...own, boot: 'a' }, { ...own, boot: 'b' }], 'abaoopaa'),
  )
  assert.deepEqual(
    Array.from({ length: shards }, (_, shard) => routes.placeOf(shard)).map((place) =>
      place !== undefined && routes.isRemote(place) ? routes.remote(place)?.boot : place,
    ),
    [0, 0, 0, 'o', 'o', 'p', 1, 1],
  )
  assert.deepEqual(
    routes.members().map(({ name, state, shards: of }) => [name, state, ...of]),
    [
      ['b', 'serving', 3, 4, 5],
      ['a', 'serving', 0, 2, 6, 7, 1],
    ],
  )
  // Whoever asks all workers asks each of them once.
  assert.equal(routes.places().length, map.workers + other.workers)
  const gone = routes.set(ofTwo(['a', ''], [...lives.slice(0, 1), { ...own, boot: 'a' }], 'a..o.'))
  assert.equal(gone.length, other.workers)
  assert.equal(routes.places().length, map.workers + other.workers)
  assert.equal(routes.remote(routes.placeOf(3) ?? -1)?.boot, 'o')
})

test('where this node is no member it has no shard, even one that nobody has ever had', () => {
  const routes = new Routes(map)
  routes.set({
    ...table(
      Array.from({ length: shards }, () => ''),
      [],
    ),
    boots: [''],
  })
  assert.equal(routes.placeOf(0), undefined)
})

test('a node leaves while it is told to and another one can take its shards', () => {
  const routes = new Routes(map)
  assert(!routes.isLeaving)
  const leaving = { ...own, state: 'leaving' as const }
  for (const [nodes, isLeaving] of [
    [[own, other], false],
    [[leaving, other], true],
    [[leaving], false],
    [[leaving, { ...other, state: 'leaving' }], false],
    [[leaving, { ...other, state: 'starting' }], false],
    [[leaving, { ...other, address: '' }], false],
    [[own, { ...other, state: 'leaving' }], false],
  ] as const) {
    routes.set(table([], nodes))
    assert.equal(routes.isLeaving, isLeaving)
  }
})
