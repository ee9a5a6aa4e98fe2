import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drainNode, undrainNode } from '../../../../src/nodes/commands/drain-node.ts'
import { nodeWatchMs } from '../../../../src/cli/limits.ts'
import { nodeEvictedMs, nodeHeartbeatMs } from '../../../../src/nodes/membership/limits.ts'
import type { JoiningNode, NodeState } from '../../../../src/store/node-table.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { MemoryNodeTable } from '../../../support/server/memory-node-table.ts'

const shards = 8

interface Draining {
  /** Undefined while it waits, true when the node has left, or the message of the failure. */
  outcome: true | string | undefined
  readonly progress: string[]
}

interface AddedNode {
  readonly state?: NodeState
  readonly address?: string
}

interface Life {
  readonly clock: FakeClock
  readonly table: MemoryNodeTable
  /** The nodes that beat. */
  readonly alive: Set<string>
  readonly add: (name: string, options?: AddedNode) => void
  readonly drain: (name: string, tables?: readonly MemoryNodeTable[]) => Draining
  /** Lets time pass in which the living nodes beat. */
  readonly pass: (ms: number) => Promise<void>
}

function identity(name: string): JoiningNode {
  return { name, boot: `${name}-boot`, address: `${name}:8450`, workers: 1 }
}

function lifeOf(): Life {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable(shards)]
  const alive = new Set<string>()
  return {
    clock,
    table,
    alive,
    add(name, { state = 'serving', address = `${name}:8450` } = {}) {
      table.add({ ...identity(name), address }, state)
      alive.add(name)
    },
    drain(name, tables = [table]) {
      const draining: Draining = { outcome: undefined, progress: [] }
      const onProgress = (done: number, of: number): void =>
        void draining.progress.push(`${done}/${of}`)
      drainNode(clock, tables, name, onProgress).then(
        () => (draining.outcome = true),
        (error: unknown) =>
          (draining.outcome = error instanceof Error ? error.message : 'an odd failure'),
      )
      return draining
    },
    async pass(ms) {
      for (let passedMs = 0; passedMs < ms; passedMs += nodeHeartbeatMs) {
        await clock.advance(nodeHeartbeatMs)
        for (const name of alive) table.beatNow(identity(name))
      }
    },
  }
}

function own(table: MemoryNodeTable, name: string): void {
  for (const row of table.shards) assert(table.claimNow(row, identity(name)))
}

/** Node a has all shards, node b takes them, and a has been told to leave. */
async function drainA({ table, add, drain, pass }: Life): Promise<Draining> {
  add('a')
  add('b')
  own(table, 'a')
  const draining = drain('a')
  await pass(nodeWatchMs + nodeHeartbeatMs)
  return draining
}

test('a node is told to leave, its progress is shown, and the command ends when its row is gone', async () => {
  const life = lifeOf()
  const { table, pass, alive } = life
  const draining = await drainA(life)
  assert.deepEqual(
    table.rows.map(({ state }) => state),
    ['leaving', 'serving'],
  )
  for (const row of table.shards.slice(0, 6)) {
    assert(table.handOverNow(row, identity('a'), identity('b')))
  }
  await pass(10 * nodeHeartbeatMs)
  assert.deepEqual(draining, { outcome: undefined, progress: ['0/8', '6/8'] })
  for (const row of table.shards.slice(6)) table.handOverNow(row, identity('a'), identity('b'))
  table.leaveNow(identity('a'))
  alive.delete('a')
  await pass(nodeHeartbeatMs)
  assert.deepEqual(draining, { outcome: true, progress: ['0/8', '6/8', '8/8'] })
})

test('a node that was evicted while it leaves is waited for in its next life, and one that was started again is not', async () => {
  for (const state of ['leaving', 'starting', 'serving'] as const) {
    const life = lifeOf()
    const { table, pass, alive } = life
    const draining = await drainA(life)
    alive.delete('a')
    table.leaveNow(identity('a'))
    const next = { ...identity('a'), boot: 'next' }
    table.add(next, state)
    await pass(2 * nodeHeartbeatMs)
    const hasEnded = state === 'serving' ? true : undefined
    assert.equal(draining.outcome, hasEnded, state)
    table.leaveNow(next)
    await pass(nodeHeartbeatMs)
    assert.equal(draining.outcome, true)
  }
})

test('if one database fails, the command stops waiting for the others', async () => {
  const { clock, table, add, drain, pass } = lifeOf()
  const other = new MemoryNodeTable(shards)
  for (const name of ['a', 'b']) {
    add(name)
    other.add(identity(name), 'serving')
  }
  const draining = drain('a', [table, other])
  await clock.advance(nodeHeartbeatMs)
  for (const name of ['a', 'b']) other.beatNow(identity(name))
  await pass(nodeWatchMs)
  table.failure = new Error('the database is away')
  await pass(2 * nodeHeartbeatMs)
  assert.equal(draining.outcome, 'the database is away')
  const { length } = other.calls
  await pass(4 * nodeHeartbeatMs)
  assert.equal(other.calls.length, length)
})

test('a node that does not exist is an error that lists the nodes', async () => {
  const { add, drain } = lifeOf()
  const none = drain('a')
  await settle()
  assert.equal(none.outcome, 'there is no node "a": no node uses this database')
  add('b')
  add('c')
  const other = drain('a')
  await settle()
  assert.equal(other.outcome, 'there is no node "a": the nodes are "b", "c"')
})

test('a node that stands still is an error, before it is told and afterward', async () => {
  const { table, add, drain, pass, alive } = lifeOf()
  add('a')
  add('b')
  alive.delete('a')
  const still = drain('a')
  await pass(nodeWatchMs + nodeHeartbeatMs)
  assert.match(`${still.outcome}`, /^"a" stands still: its server does not run/)
  assert.equal(table.rows[0]?.state, 'serving')
  alive.add('a')
  const draining = drain('a')
  await pass(nodeWatchMs + nodeHeartbeatMs)
  alive.delete('a')
  await pass(nodeEvictedMs)
  assert.equal(draining.outcome, undefined)
  await pass(2 * nodeHeartbeatMs)
  assert.match(`${draining.outcome}`, /^"a" stands still/)
})

test('if no other node can take the shards, nothing is changed, and the error says why each cannot', async () => {
  const { table, add, drain, pass, alive } = lifeOf()
  add('a')
  const alone = drain('a')
  await pass(nodeWatchMs + nodeHeartbeatMs)
  assert.match(`${alone.outcome}`, /^no other node can take .* of "a": it is the only one$/)
  add('b', { state: 'leaving' })
  add('c', { address: '' })
  add('d')
  add('e', { state: 'starting' })
  alive.delete('d')
  const none = drain('a')
  await pass(nodeWatchMs + nodeHeartbeatMs)
  assert.equal(
    none.outcome,
    'no other node can take the shards of "a": "b" is leaving, too, "c" has no --cluster-listen, "d" stands still, "e" is still starting',
  )
  assert.equal(table.rows[0]?.state, 'serving')
})

test('a command that waits ends if the node is told to stay, or if no other one can take its shards any more', async () => {
  for (const [change, message] of [
    [(table: MemoryNodeTable) => table.setStateNow('a', 'serving'), /^"a" was told to stay$/],
    [
      (table: MemoryNodeTable) => table.leaveNow(identity('b')),
      /it is the only one; it goes on serving until one can: .* undrain$/,
    ],
  ] as const) {
    const { table, add, drain, pass } = lifeOf()
    add('a')
    add('b')
    const draining = drain('a')
    await pass(nodeWatchMs + nodeHeartbeatMs)
    assert.equal(draining.outcome, undefined)
    assert(change(table))
    await pass(nodeHeartbeatMs)
    assert.match(`${draining.outcome}`, message)
  }
})

test('a node that was started again meanwhile has left, too', async () => {
  const { table, add, drain, pass } = lifeOf()
  add('a')
  add('b')
  const draining = drain('a')
  await pass(nodeWatchMs + nodeHeartbeatMs)
  table.add({ ...identity('a'), boot: 'a-next' })
  await pass(nodeHeartbeatMs)
  assert.equal(draining.outcome, true)
})

test('a node that was told to leave is told to stay', async () => {
  const { table, add } = lifeOf()
  add('a', { state: 'leaving' })
  await undrainNode([table], 'a')
  assert.equal(table.rows[0]?.state, 'serving')
  await assert.rejects(undrainNode([table], 'b'), /there is no node "b": the nodes are "a"$/)
})

test('in several databases a node is told to leave all that it is in, and has left when all of its rows are gone', async () => {
  const { table, add, drain, pass, alive } = lifeOf()
  const [second, third] = [new MemoryNodeTable(2), new MemoryNodeTable(2)]
  add('a')
  add('b')
  own(table, 'a')
  for (const name of ['a', 'b']) second.add(identity(name))
  own(second, 'a')
  third.add(identity('b'))
  const draining = drain('a', [table, second, third])
  const beat = async (): Promise<void> => {
    for (const each of [second, third]) for (const name of alive) each.beatNow(identity(name))
    await pass(nodeHeartbeatMs)
  }
  for (let passedMs = 0; passedMs < nodeWatchMs + nodeHeartbeatMs; passedMs += nodeHeartbeatMs) {
    await beat()
  }
  assert.deepEqual(
    [...table.rows, ...second.rows, ...third.rows].map(({ state }) => state),
    ['leaving', 'serving', 'leaving', 'serving', 'serving'],
  )
  table.leaveNow(identity('a'))
  await beat()
  assert.deepEqual(draining, { outcome: undefined, progress: ['0/10', '8/10'] })
  second.leaveNow(identity('a'))
  await beat()
  assert.deepEqual(draining, { outcome: true, progress: ['0/10', '8/10', '10/10'] })
})

test('a node whose shards nobody can take in one of the databases is told nothing in any', async () => {
  const { table, add, drain, pass } = lifeOf()
  const second = new MemoryNodeTable(2)
  add('a')
  add('b')
  second.add(identity('a'))
  const draining = drain('a', [table, second])
  await settle()
  second.beatNow(identity('a'))
  await pass(nodeWatchMs + nodeHeartbeatMs)
  assert.match(`${draining.outcome}`, /^no other node can take the shards of "a"/)
  assert.deepEqual(
    [...table.rows, ...second.rows].map(({ state }) => state),
    ['serving', 'serving', 'serving'],
  )
})
