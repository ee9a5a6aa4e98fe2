/** The contract of the table in which nodes beat, and of the owners of shards beside it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type {
  JoiningNode,
  NodeIdentity,
  NodeState,
  NodeTable,
  ShardRow,
} from '../../src/store/node-table.ts'
import { until } from '../support/kit/until.ts'

export interface NodeTableHarness {
  /** The number of shards. */
  readonly shards: number
  /** Returns the same rows to each caller, as different processes see them. */
  connect(): NodeTable
  /** Adds the row of a node, whatever other rows there are. */
  add(node: JoiningNode, state?: NodeState): Promise<void>
  /** Opens a shard as a process of this node does. Returns whether that succeeded. */
  claim(shard: number, owner: NodeIdentity): Promise<boolean>
  /** Removes all nodes and the owners of all shards. */
  clear(): Promise<void>
  cleanUp(): void | Promise<void>
}

function node(name: string, boot = `${name}-boot`): JoiningNode {
  return { name, boot, address: '10.0.0.5:8450', workers: 2 }
}

function alone(name: string): JoiningNode {
  return { ...node(name), address: '' }
}

export function nodeTableContract(
  title: string,
  makeHarness: () => NodeTableHarness | Promise<NodeTableHarness>,
): void {
  describe(title, () => {
    let harness: NodeTableHarness
    before(async () => {
      harness = await makeHarness()
    })
    after(() => harness.cleanUp())

    const tables = async (): Promise<[NodeTable, NodeTable]> => {
      await harness.clear()
      return [harness.connect(), harness.connect()]
    }
    const inHarness = { tables, current: () => harness }
    heartbeatTests(inHarness)
    joinTests(inHarness)
    removalTests(inHarness)
    shardTests(inHarness)
    changeTests(inHarness)
  })
}

interface InHarness {
  readonly current: () => NodeTableHarness
  /** Clears all rows and returns two connections. */
  readonly tables: () => Promise<[NodeTable, NodeTable]>
}

async function namesOf(table: NodeTable): Promise<readonly string[]> {
  return (await table.read()).nodes.map(({ name }) => name).toSorted()
}

async function shardOf(table: NodeTable, shard: number): Promise<ShardRow | undefined> {
  return (await table.read()).shards[shard]
}

function heartbeatTests({ tables, current }: InHarness): void {
  test('a node that joins has a row, which others read as it was written', async () => {
    const [a, b] = await tables()
    assert.deepEqual((await a.read()).nodes, [])
    assert.equal(await a.join(node('a')), undefined)
    assert.deepEqual((await b.read()).nodes, [{ ...node('a'), beat: '0', state: 'starting' }])
  })

  test('a heartbeat adds one to the beat of its own row, and reads the rows from before it', async () => {
    const [a] = await tables()
    await current().add(node('a'))
    await current().add(node('b'), 'leaving')
    for (let beat = 0; beat < 12; beat++) {
      const { isMember, nodes } = await a.beat(node('a'))
      assert.equal(isMember, true)
      const beats = Object.fromEntries(nodes.map((row) => [row.name, `${row.beat} ${row.state}`]))
      assert.deepEqual(beats, { a: `${beat} serving`, b: '0 leaving' })
    }
  })

  test('a heartbeat leaves what the one before has found of the clocks, for all nodes to read', async () => {
    const [a, b] = await tables()
    assert.equal(await a.join(node('a')), undefined)
    const clockOf = async (): Promise<unknown> => (await b.read()).nodes[0]?.clock
    await a.beat(node('a'))
    assert.equal(await clockOf(), undefined)
    const clock = { skewMs: -600_000, lagMs: 12 }
    await a.beat(node('a'), clock)
    assert.deepEqual(await clockOf(), clock)
  })

  test('a heartbeat and a read return all shards, in the order of their numbers', async () => {
    const [a] = await tables()
    await current().add(node('a'))
    await current().claim(1, node('a'))
    const { shards } = await a.beat(node('a'))
    assert.deepEqual(
      shards.map(({ shard }) => shard),
      Array.from({ length: current().shards }, (_, shard) => shard),
    )
    assert.deepEqual(shards[1], { shard: 1, epoch: '1', node: 'a', boot: 'a-boot' })
    assert.deepEqual(shards[2], { shard: 2, epoch: '0', node: '', boot: '' })
    assert.deepEqual((await a.read()).shards, shards)
  })
}

function joinTests({ tables, current }: InHarness): void {
  test('nodes with addresses join beside each other, unless they have the same name', async () => {
    const [a, b] = await tables()
    assert.equal(await a.join(node('a')), undefined)
    assert.equal(await b.join(node('b')), undefined)
    for (const other of [node('a', 'later'), node('a')]) {
      const refusal = await b.join(other)
      assert(refusal?.reason === 'name taken', refusal?.reason)
      assert.deepEqual(refusal.row, { ...node('a'), beat: '0', state: 'starting' })
    }
    assert.deepEqual(await namesOf(a), ['a', 'b'])
  })

  test('a node without an address is alone: it joins no other one, and no other one joins it', async () => {
    const [a, b] = await tables()
    await a.join(alone('a'))
    for (const other of [node('b'), alone('b'), alone('a'), node('a')]) {
      const refusal = await b.join(other)
      assert(refusal?.reason === 'other without address', refusal?.reason)
      assert.equal(refusal.row.name, 'a')
    }
    await current().clear()
    await a.join(node('a'))
    for (const name of ['a', 'b']) {
      assert.equal((await b.join(alone(name)))?.reason, 'self without address')
    }
    assert.deepEqual((await a.read()).nodes, [{ ...node('a'), beat: '0', state: 'starting' }])
  })

  test('of nodes that join at the same time, at most one has a name, and at most one has no address', async () => {
    for (const make of [
      (): JoiningNode => node('a'),
      (nth: number): JoiningNode => alone(`${nth}`),
    ]) {
      for (let round = 0; round < 10; round++) {
        const both = await tables()
        const refusals = await Promise.all(
          both.map((table, nth) => table.join({ ...make(nth), boot: `${nth}` })),
        )
        const count = refusals.filter((refusal) => refusal === undefined).length
        assert(count <= 1)
        assert.equal((await both[0].read()).nodes.length, count)
      }
    }
  })

  test('a node that joins replaces a row in the same moment, if its beat is still the same', async () => {
    const [a, b] = await tables()
    await a.join(node('a', 'last'))
    await a.beat(node('a', 'last'))
    const late = await b.join(node('a', 'next'), { ...node('a', 'last'), beat: '0' })
    assert.equal(late?.reason, 'name taken')
    assert.equal(await b.join(node('a', 'next'), { ...node('a', 'last'), beat: '1' }), undefined)
    assert.deepEqual((await a.read()).nodes, [
      { ...node('a', 'next'), beat: '0', state: 'starting' },
    ])
  })

  test('a node that is refused has replaced nothing', async () => {
    const [a, b] = await tables()
    await a.join(node('a', 'last'))
    await current().add(alone('other'))
    const refusal = await b.join(node('a', 'next'), { ...node('a', 'last'), beat: '0' })
    assert.equal(refusal?.reason, 'other without address')
    assert.deepEqual(await namesOf(b), ['a', 'other'])
  })
}

function removalTests({ tables, current }: InHarness): void {
  test('a row is evicted only if its beat is still the same', async () => {
    const [a, b] = await tables()
    await current().add(node('a'))
    await current().add(node('b'))
    const [read] = (await b.read()).nodes
    assert(read !== undefined)
    await a.beat(read)
    assert.equal(await b.evict(read), false)
    await b.evict({ ...read, beat: '1', boot: 'another' })
    await b.evict({ ...read, beat: '1', name: 'another' })
    assert.equal((await a.read()).nodes.length, 2)
    assert.equal(await b.evict({ ...read, beat: '1' }), true)
    assert.deepEqual(
      await namesOf(a),
      ['a', 'b'].filter((name) => name !== read.name),
    )
  })

  test('a boot that was evicted never becomes a member again', async () => {
    const [a, b] = await tables()
    await current().add(node('a'))
    const [row] = (await b.read()).nodes
    assert(row !== undefined)
    await b.evict(row)
    const { isMember, nodes } = await a.beat(node('a'))
    assert.deepEqual([isMember, nodes], [false, []])
    await current().add(node('a', 'next'))
    const later = await a.beat(node('a'))
    assert.equal(later.isMember, false)
    assert.deepEqual(
      later.nodes.map(({ boot, beat }) => [boot, beat]),
      [['next', '0']],
    )
    assert.equal((await b.read()).nodes[0]?.beat, '0')
  })

  test('a node that leaves deletes its own row, and not that of its next life', async () => {
    const [a, b] = await tables()
    await current().add(node('a', 'next'))
    await a.leave(node('a'))
    assert.equal((await b.read()).nodes.length, 1)
    await a.leave(node('a', 'next'))
    await a.leave(node('a', 'next'))
    assert.deepEqual((await b.read()).nodes, [])
  })

  test('the state of a node changes by its name, and its heartbeats keep it', async () => {
    const [a, b] = await tables()
    await a.join(node('a'))
    await a.join(node('b'))
    assert.equal(await b.setState('a', 'leaving'), true)
    await a.beat(node('a'))
    assert.deepEqual(
      (await b.read()).nodes.map(({ name, state }) => `${name} ${state}`).toSorted(),
      ['a leaving', 'b starting'],
    )
    assert.equal(await b.setState('a', 'serving'), true)
    assert.equal(await b.setState('c', 'leaving'), false)
    assert.deepEqual(
      (await a.read()).nodes.map(({ state }) => state),
      ['serving', 'starting'],
    )
  })

  test('a node serves when it says so, in its own life and from the state that it thinks it has', async () => {
    const [a, b] = await tables()
    await a.join(node('a'))
    const stateOf = async (): Promise<unknown> => (await b.read()).nodes[0]?.state
    await a.started(node('a', 'last'))
    await a.notStarted(node('a'))
    assert.equal(await stateOf(), 'starting')
    await a.started(node('a'))
    await a.started(node('a'))
    assert.equal(await stateOf(), 'serving')
    await a.notStarted(node('a', 'last'))
    assert.equal(await stateOf(), 'serving')
    await a.notStarted(node('a'))
    assert.equal(await stateOf(), 'starting')
    await b.setState('a', 'leaving')
    await a.started(node('a'))
    await a.notStarted(node('a'))
    assert.equal(await stateOf(), 'leaving')
  })
}

function shardTests({ tables, current }: InHarness): void {
  test('a shard that its owner hands over has a new epoch, and only the new owner can open it', async () => {
    const [a] = await tables()
    for (const name of ['a', 'b']) await current().add(node(name))
    assert.equal(await current().claim(0, node('a')), true)
    assert.equal(await a.handOver(0, node('a'), node('b')), true)
    const handedOver = { shard: 0, epoch: '2', node: 'b', boot: 'b-boot' }
    assert.deepEqual(await shardOf(a, 0), handedOver)
    assert.equal(await current().claim(0, node('a')), false)
    assert.deepEqual(await shardOf(a, 0), handedOver)
    assert.equal(await current().claim(0, node('b')), true)
    assert.equal((await shardOf(a, 0))?.epoch, '3')
  })

  test('a life of a node that was evicted claims no shard, even if the node has joined again and nobody owns the shard', async () => {
    const [a] = await tables()
    await current().add(node('a', 'second'))
    assert.equal(await current().claim(0, node('a', 'first')), false)
    assert.equal((await shardOf(a, 0))?.epoch, '0')
    assert.equal(await current().claim(0, node('a', 'second')), true)
  })

  test('a shard is not handed over by a node that does not own it, nor to one that is not serving', async () => {
    const [a] = await tables()
    for (const name of ['a', 'b']) await current().add(node(name))
    for (const state of ['starting', 'leaving'] as const) await current().add(node(state), state)
    await current().claim(0, node('a'))
    const unchanged = await shardOf(a, 0)
    for (const [shard, from, to] of [
      [0, node('b'), node('b')],
      [0, node('a', 'last'), node('b')],
      [0, node('a'), node('b', 'last')],
      [0, node('a'), node('c', 'b-boot')],
      [0, node('a'), node('leaving')],
      [0, node('a'), node('starting')],
      [1, node('a'), node('b')],
      [current().shards, node('a'), node('b')],
    ] as const) {
      assert.equal(await a.handOver(shard, from, to), false, `${shard} ${from.boot} ${to.boot}`)
    }
    assert.deepEqual(await shardOf(a, 0), unchanged)
    assert.equal((await shardOf(a, 1))?.boot, '')
  })
}

function changeTests({ tables, current }: InHarness): void {
  test('every change that another connection makes is told, and none of the own ones', async () => {
    const [a, b] = await tables()
    const told = { a: 0, b: 0 }
    a.onChange = () => void told.a++
    b.onChange = () => void told.b++
    // Both listen from their first call on.
    await a.read()
    await b.read()
    const changes: readonly [string, () => Promise<unknown>][] = [
      ['join', () => a.join(node('a'))],
      ['join', () => a.join(node('b'))],
      ['setState', () => a.setState('b', 'leaving')],
      ['setState', () => a.setState('b', 'starting')],
      ['started', () => a.started(node('b'))],
      ['handOver', () => a.handOver(0, node('a'), node('b'))],
      ['leave', () => a.leave(node('b'))],
      ['evict', () => a.evict({ ...node('a'), beat: '0' })],
    ]
    for (const [name, change] of changes) {
      if (name === 'handOver') await current().claim(0, node('a'))
      const toldBefore = told.b
      await change()
      await until(() => told.b > toldBefore)
    }
    // That of the claim.
    assert(told.a <= 1, `${told.a}`)
    a.onChange = undefined
    b.onChange = undefined
  })

  test('each claim of a shard is told, and heartbeats are not', async () => {
    const [a] = await tables()
    await current().add(node('a'))
    let told = 0
    a.onChange = () => void told++
    await a.read()
    await current().claim(0, node('a'))
    await until(() => told === 1)
    await current().claim(0, node('a'))
    await until(() => told === 2)
    await a.beat(node('a'))
    await current().claim(1, node('a'))
    await until(() => told > 2)
    assert.equal(told, 3)
    a.onChange = undefined
  })

  test('changes that were not made are not told', async () => {
    const [a, b] = await tables()
    await current().add(node('a'))
    let told = 0
    b.onChange = () => void told++
    await b.read()
    await a.join(node('a', 'next'))
    await a.evict({ ...node('a'), beat: '7' })
    await a.leave(node('a', 'last'))
    await a.setState('nobody', 'leaving')
    await a.handOver(0, node('a'), node('a'))
    await a.setState('a', 'leaving')
    await until(() => told > 0)
    assert.equal(told, 1)
    b.onChange = undefined
  })
}
