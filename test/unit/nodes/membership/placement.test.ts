import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nodeHeartbeatMs, nodeObservationGapMs } from '../../../../src/nodes/membership/limits.ts'
import { nodeLeaseMs } from '../../../../src/process/limits.ts'
import {
  handOverPauseMs,
  handOversLeavingMax,
  orphanTurnMs,
  Placement,
  type PlacementDecision,
  type PlacementView,
} from '../../../../src/nodes/membership/placement.ts'
import { rendezvousRank } from '../../../../src/nodes/membership/rendezvous.ts'
import type { NodeRow, NodeState, ShardRow } from '../../../../src/store/node-table.ts'

const shardCount = 16
const anyBeat = 'any'
const self = { name: 'a', boot: 'a-boot' }

function node(name: string, state: NodeState = 'serving', address = '10.0.0.1:8450'): NodeRow {
  return { name, boot: `${name}-boot`, beat: anyBeat, address, workers: 2, state }
}

const three = ['a', 'b', 'c'].map((name) => node(name))

/** Returns the rows of all shards, each with the boot that `ownerOf` names. */
function shardsOf(ownerOf: (shard: number) => string, epoch = '1'): readonly ShardRow[] {
  return Array.from({ length: shardCount }, (_, shard) => {
    const boot = ownerOf(shard)
    return { shard, epoch, node: boot.split('-')[0] ?? '', boot }
  })
}

/** The names of the nodes in the order in which the shard belongs to them. */
function rankOf(shard: number, nodes: readonly NodeRow[] = three): readonly string[] {
  return rendezvousRank(shard, nodes).map(({ name }) => name)
}

/** The shards whose rank has this node at this place. */
function shardsAt(name: string, place: number, nodes: readonly NodeRow[] = three): number[] {
  return shardsOf(() => '')
    .map(({ shard }) => shard)
    .filter((shard) => rankOf(shard, nodes)[place] === name)
}

function placed(shard: number): string {
  return `${rankOf(shard)[0]}-boot`
}

/** All nodes beat all the time, unless they are given with another beat. */
function viewOf({ nowMs = 0, nodes = three, ...given }: Partial<PlacementView>): PlacementView {
  return {
    nowMs,
    nodes: nodes.map((row) => (row.beat === anyBeat ? { ...row, beat: `at ${nowMs}` } : row)),
    shards: shardsOf(placed),
    self,
    open: new Set(),
    moving: new Set(),
    ...given,
  }
}

/** What a new placement decides that has read the same rows once before. */
function decisionOn(given: Partial<PlacementView>): PlacementDecision {
  return decisionAt(new Placement(), 1, given)
}

/** Reads the same rows until `toMs`, and returns the last decision. */
function decisionAt(
  placement: Placement,
  toMs: number,
  given: Partial<PlacementView>,
): PlacementDecision {
  for (let nowMs = given.nowMs ?? 0; nowMs < toMs; nowMs += nodeHeartbeatMs)
    placement.decide(viewOf({ ...given, nowMs }))
  return placement.decide(viewOf({ ...given, nowMs: toMs }))
}

function targetsOf({ handOver }: PlacementDecision): Set<string> {
  return new Set(handOver.map(({ to }) => to.name))
}

const all = new Set(Array.from({ length: shardCount }, (_, shard) => shard))
const nothing = { open: [], handOver: [], drop: [], mayLeave: false }

describe('what a node opens', () => {
  test('its own shards that are not open, at once', () => {
    const own = shardsAt('a', 0)
    assert(own.length > 1)
    assert.deepEqual(new Placement().decide(viewOf({})), { ...nothing, open: own })
    const open = new Set(own.slice(1))
    assert.deepEqual(new Placement().decide(viewOf({ open })).open, own.slice(0, 1))
    const moving = new Set(own.slice(0, 1))
    assert.deepEqual(new Placement().decide(viewOf({ open, moving })).open, [])
  })

  test('orphans in its turn: at once where it is first, and later by one turn for each node before it', () => {
    for (const boot of ['', 'gone-boot']) {
      const placement = new Placement()
      const shards = shardsOf(() => boot)
      let open: ReadonlySet<number> = new Set()
      for (const place of [0, 1, 2]) {
        const dueMs = place * orphanTurnMs
        if (dueMs > 0) assert.deepEqual(decisionAt(placement, dueMs - 1, { shards, open }).open, [])
        const decision = decisionAt(placement, dueMs, { shards, open, nowMs: dueMs })
        assert.deepEqual(decision, { ...nothing, open: shardsAt('a', place) })
        open = new Set([...open, ...decision.open])
      }
      assert.equal(open.size, shardCount)
    }
  })

  test('an orphan with another epoch is another one, and with other nodes its turns begin anew', () => {
    const [second] = shardsAt('a', 1)
    assert(second !== undefined)
    for (const change of [
      { shards: shardsOf(() => 'gone-boot', '2') },
      { nodes: [...three.slice(0, 2), { ...node('c'), boot: 'next-boot' }] },
    ]) {
      const placement = new Placement()
      decisionAt(placement, orphanTurnMs - 1, { shards: shardsOf(() => 'gone-boot') })
      const given = { shards: shardsOf(() => 'gone-boot'), ...change }
      const begun = orphanTurnMs
      assert(!placement.decide(viewOf({ ...given, nowMs: begun })).open.includes(second))
      const early = placement.decide(viewOf({ ...given, nowMs: begun + orphanTurnMs - 1 }))
      assert(!early.open.includes(second))
      const due = placement.decide(viewOf({ ...given, nowMs: begun + orphanTurnMs }))
      assert(due.open.includes(second))
    }
  })

  test('after a change of the nodes, the orphans that it is first for among the new ones', () => {
    const placement = new Placement()
    const shards = shardsOf(() => 'gone-boot')
    assert.deepEqual(placement.decide(viewOf({ shards })).open, shardsAt('a', 0))
    const nodes = [...three.slice(0, 2), node('d'), node('e')]
    assert.notDeepEqual(shardsAt('a', 0, nodes), shardsAt('a', 0))
    assert.deepEqual(placement.decide(viewOf({ shards, nodes })).open, shardsAt('a', 0, nodes))
  })

  test('an orphan whose owner comes back to its row is none', () => {
    const placement = new Placement()
    const shards = shardsOf(() => 'b-boot')
    assert.deepEqual(decisionAt(placement, 10 * orphanTurnMs, { shards }).open, [])
  })

  test('a node that leaves claims no orphan, unless no node is serving', () => {
    const shards = shardsOf(() => '')
    const leaving = [node('a', 'leaving'), node('b'), node('c')]
    const late = decisionAt(new Placement(), 10 * orphanTurnMs, { nodes: leaving, shards })
    assert.deepEqual(late, { ...nothing, mayLeave: true })
    const others = [node('a', 'leaving'), node('b', 'leaving')]
    const alone = new Placement().decide(viewOf({ nodes: others, shards }))
    assert.deepEqual(alone, { ...nothing, open: shardsAt('a', 0, others) })
  })

  test('nodes that leave are in no rank of another one', () => {
    const nodes = [node('a'), node('b', 'leaving'), node('c', 'leaving')]
    const shards = shardsOf(() => '')
    assert.equal(new Placement().decide(viewOf({ nodes, shards })).open.length, shardCount)
  })
})

describe('what a node hands over', () => {
  const shards = shardsOf(() => 'a-boot')
  const mine = { shards, open: all }
  const foreign = [...all].filter((shard) => rankOf(shard)[0] !== 'a')

  test('the first shard that another node is first for, when the nodes have been the same for long enough', () => {
    const placement = new Placement()
    assert.deepEqual(decisionAt(placement, handOverPauseMs - 1, mine), nothing)
    const [shard] = foreign
    assert(shard !== undefined)
    const to = rankOf(shard)[0] ?? ''
    const decision = decisionAt(placement, handOverPauseMs, { ...mine, nowMs: handOverPauseMs })
    assert.deepEqual(decision, {
      ...nothing,
      handOver: [{ shard, to: { name: to, boot: `${to}-boot` } }],
    })
  })

  test('one at a time, and never one that is on its way or not open', () => {
    const placement = new Placement()
    const moving = new Set(foreign.slice(0, 1))
    assert.deepEqual(decisionAt(placement, handOverPauseMs, { ...mine, moving }).handOver, [])
    const open = new Set(foreign.slice(1))
    const later = { ...mine, open, nowMs: handOverPauseMs }
    const [next] = decisionAt(placement, handOverPauseMs, later).handOver
    assert.equal(next?.shard, foreign[1])
  })

  test('nothing while there is an orphan, even one that it is opening itself', () => {
    const withOrphan = shardsOf((shard) => (shard === 3 ? 'gone-boot' : 'a-boot'))
    const placement = new Placement()
    const given = { shards: withOrphan, open: all }
    assert.deepEqual(decisionAt(placement, 2 * handOverPauseMs, given), nothing)
    const nowMs = 2 * handOverPauseMs
    assert.equal(decisionAt(placement, nowMs, { ...mine, nowMs }).handOver.length, 1)
  })

  test('nothing for a while after any change of the nodes, and after a pause of the reads', () => {
    const restarted = [...three.slice(0, 2), { ...node('c'), boot: 'next-boot' }]
    for (const [nodes, begunMs] of [
      [restarted, handOverPauseMs],
      [[node('a'), node('b'), node('c', 'starting')], handOverPauseMs],
      [three.slice(0, 2), handOverPauseMs],
      [[node('a'), node('b'), node('c', 'leaving')], handOverPauseMs],
      [three, handOverPauseMs + nodeObservationGapMs + 1],
    ] as const) {
      const placement = new Placement()
      decisionAt(placement, handOverPauseMs, mine)
      const changed = { ...mine, nodes, nowMs: begunMs }
      assert.deepEqual(decisionAt(placement, begunMs + handOverPauseMs - 1, changed), nothing)
      const due = { ...changed, nowMs: begunMs + handOverPauseMs }
      assert.equal(decisionAt(placement, due.nowMs, due).handOver.length, 1)
    }
  })

  test('a heartbeat, a claim and another address are no change of the nodes', () => {
    const placement = new Placement()
    decisionAt(placement, handOverPauseMs - 1, mine)
    const nodes = three.map((row) => ({ ...row, address: '10.0.0.9:8450' }))
    const nowMs = handOverPauseMs
    const shardsLater = shardsOf(() => 'a-boot', '7')
    const decision = placement.decide(viewOf({ ...mine, nodes, shards: shardsLater, nowMs }))
    assert.equal(decision.handOver.length, 1)
  })

  test('nothing to a node without an address, or that leaves', () => {
    for (const others of [
      [node('b', 'leaving'), node('c', 'leaving')],
      [node('b', 'serving', ''), node('c', 'serving', '')],
    ]) {
      const given = { ...mine, nodes: [node('a'), ...others] }
      assert.deepEqual(decisionAt(new Placement(), 2 * handOverPauseMs, given), nothing)
    }
  })

  test('nothing more when every shard is where it belongs', () => {
    const open = new Set(shardsAt('a', 0))
    const decision = decisionAt(new Placement(), 10 * handOverPauseMs, { open })
    assert.deepEqual(decision, nothing)
  })
})

describe('a node that leaves', () => {
  const nodes = [node('a', 'leaving'), node('b'), node('c')]
  const shards = shardsOf(() => 'a-boot')

  test('hands over several shards at a time without waiting, each to the first that can take it', () => {
    const placement = new Placement()
    const { handOver, ...rest } = decisionAt(placement, 1, { nodes, shards, open: all })
    assert.deepEqual(rest, { open: [], drop: [], mayLeave: false })
    assert.deepEqual(
      handOver,
      [...all].slice(0, handOversLeavingMax).map((shard) => {
        const name = rankOf(shard, nodes.slice(1))[0] ?? ''
        return { shard, to: { name, boot: `${name}-boot` } }
      }),
    )
    const moving = new Set([0, 2, 5])
    const later = decisionAt(placement, 2, { nodes, shards, open: all, moving })
    assert.deepEqual(
      later.handOver.map(({ shard }) => shard),
      [1],
    )
  })

  test('also hands over shards that it has not opened, and does so while there are orphans', () => {
    const some = shardsOf((shard) => (shard === 0 ? 'gone-boot' : 'a-boot'))
    const decision = decisionOn({ nodes, shards: some })
    assert.deepEqual(decision.open, [])
    assert.deepEqual(
      decision.handOver.map(({ shard }) => shard),
      [1, 2, 3, 4],
    )
  })

  test('may leave when it owns nothing, has nothing open, and another node can take shards', () => {
    const others = shardsOf(() => 'b-boot')
    const decide = (given: Partial<PlacementView>): boolean =>
      decisionOn({ nodes, shards: others, ...given }).mayLeave
    assert.equal(decide({}), true)
    assert.equal(decide({ open: new Set([1]) }), false)
    assert.equal(decide({ moving: new Set([1]) }), false)
    assert.equal(
      decide({ shards: shardsOf((shard) => (shard === 9 ? 'a-boot' : 'b-boot')) }),
      false,
    )
    assert.equal(decide({ nodes: three }), false)
    assert.equal(decide({ nodes: [node('a', 'leaving'), node('b', 'leaving')] }), false)
  })

  test('leaves nothing to a node whose lease is over, or which it has not seen beating', () => {
    const placement = new Placement()
    const first = { nodes, shards, open: all }
    assert.deepEqual(placement.decide(viewOf(first)), nothing)
    decisionAt(placement, 250, first)
    const stopped = nodes.map((row) => (row.name === 'b' ? { ...row, beat: 'at 250' } : row))
    const given = { ...first, nodes: stopped, nowMs: 250 }
    const before = decisionAt(placement, 250 + nodeLeaseMs, given)
    assert.deepEqual(targetsOf(before), new Set(['b', 'c']))
    const later = { ...given, nowMs: 251 + nodeLeaseMs }
    assert.deepEqual(targetsOf(placement.decide(viewOf(later))), new Set(['c']))
    const none = { ...later, nodes: stopped.slice(0, 2), shards: shardsOf(() => 'b-boot') }
    assert.equal(placement.decide(viewOf({ ...none, open: new Set() })).mayLeave, false)
  })

  test('goes on if no other node can take its shards: there is none, or it leaves or stands still', () => {
    const still = { ...node('b'), beat: '7' }
    for (const others of [[], [node('b', 'leaving')], [still]]) {
      const given = { nodes: [node('a', 'leaving'), ...others], shards, open: new Set([1, 2]) }
      const decision = decisionAt(new Placement(), 2 * handOverPauseMs, given)
      const open = [...all].filter((shard) => shard !== 1 && shard !== 2)
      assert.deepEqual(decision, { ...nothing, open })
    }
  })
})

describe('what a node drops', () => {
  test('shards that another living node owns, unless they are on their way', () => {
    const shards = shardsOf((shard) => (shard < 4 ? 'b-boot' : 'a-boot'))
    const decision = decisionOn({ shards, open: all, moving: new Set([2]) })
    assert.deepEqual(decision, { ...nothing, drop: [0, 1, 3] })
  })

  test('no orphan, because its row may be older than the claim, unless the node leaves', () => {
    const shards = shardsOf((shard) => ['', 'gone-boot', 'a-boot'][shard % 3] ?? '')
    const open = new Set([0, 1, 2])
    assert.deepEqual(decisionOn({ shards, open }).drop, [])
    const nodes = [node('a', 'leaving'), node('b')]
    assert.deepEqual(decisionOn({ nodes, shards, open }).drop, [0, 1])
    const last = [node('a', 'leaving')]
    assert.deepEqual(decisionOn({ nodes: last, shards, open }).drop, [])
  })

  test('nothing happens without a row of its own, and other lives of the same name are other nodes', () => {
    const nodes = [{ ...node('a'), boot: 'next-boot' }, node('b')]
    const shards = shardsOf(() => '')
    const decision = decisionAt(new Placement(), 10 * orphanTurnMs, { nodes, shards, open: all })
    assert.deepEqual(decision, nothing)
  })
})
