import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  claimPaceMs,
  handOverAllMsMax,
  leavePauseMs,
  settleMsMax,
  ShardCoordinator,
} from '../../../../src/nodes/membership/shard-coordinator.ts'
import { nodeHeartbeatMs } from '../../../../src/nodes/membership/limits.ts'
import { ownerWaitMsMax } from '../../../../src/api/limits.ts'
import { nodeLeaseMs } from '../../../../src/process/limits.ts'
import { handOverPauseMs, handOversLeavingMax } from '../../../../src/nodes/membership/placement.ts'
import type { RouteTable } from '../../../../src/process/routes.ts'
import type {
  ShardControl,
  ShardOpening,
  ShardWorker,
} from '../../../../src/process/shard-assignment.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { MemoryNodeTable } from '../../../support/server/memory-node-table.ts'

const shards = 4
const own = { name: 'own', boot: 'own-1', address: '10.0.0.1:1', workers: 1 }
const other = { name: 'other', boot: 'other-1', address: '10.0.0.2:1', workers: 1 }
const third = { name: 'third', boot: 'third-1', address: '10.0.0.3:1', workers: 1 }
const skip = (): void => undefined

/** Workers that open what the table lets them claim. */
class FakeWorkers implements ShardControl, ShardWorker {
  readonly opened = new Set<number>()
  readonly calls: string[] = []
  readonly routes: RouteTable[] = []
  canOpen = true
  failure: Error | undefined
  /** What dropping or leaving a shard waits for. */
  untilClosed = Promise.resolve()
  readonly #table: MemoryNodeTable

  constructor(table: MemoryNodeTable) {
    this.#table = table
  }

  isServed(shard: number): boolean {
    return this.opened.has(shard)
  }

  workerOf(): ShardWorker {
    return this
  }

  async open({ shard, boot }: ShardOpening): Promise<void> {
    this.calls.push(`open ${shard}`)
    await Promise.resolve()
    if (this.failure !== undefined) throw this.failure
    const row = this.#table.shards[shard]
    const isClaimed = row !== undefined && this.#table.claimNow(row, { name: own.name, boot })
    if (!isClaimed) throw new Error('not the owner')
    this.opened.add(shard)
  }

  async leave(shard: number): Promise<void> {
    this.calls.push(`leave ${shard}`)
    await this.untilClosed
    if (this.failure !== undefined) throw this.failure
    this.opened.delete(shard)
  }

  async drop(shard: number): Promise<void> {
    this.calls.push(`drop ${shard}`)
    await this.untilClosed
    this.opened.delete(shard)
  }

  setRoutes(routes: RouteTable): void {
    this.routes.push(routes)
  }
}

function setUp({ shards: count } = { shards }) {
  const clock = new FakeClock()
  const table = new MemoryNodeTable(count)
  const workers = new FakeWorkers(table)
  const life = {
    left: 0,
    mayEnd: true,
    isReached: true,
    /** Whether the other node claims what it is given, before the next heartbeat of this one. */
    claims: true,
    warnings: [] as string[],
  }
  const coordinator: ShardCoordinator = new ShardCoordinator({
    clock,
    table,
    shards: Array.from({ length: count }, (_, shard) => shard),
    onRoutes: () => workers.setRoutes(coordinator.routes()),
    log: {
      debug: skip,
      info: skip,
      warn: (_details, text) => void life.warnings.push(text),
      error: skip,
    },
    onLeft() {
      life.left += 1
      return life.mayEnd
    },
    reaches: async (node) => life.isReached || node.boot === third.boot,
  })
  table.add(own)
  coordinator.joined(own)
  const claimed = new Set<string>()
  const claim = (): void => {
    for (const row of table.shards.filter(({ boot }) => boot === other.boot)) {
      if (claimed.has(`${row.shard} ${row.epoch}`)) continue
      table.claimNow(row, other)
      claimed.add(`${row.shard} ${table.shards[row.shard]?.epoch}`)
    }
  }
  const beat = async (): Promise<void> => {
    if (life.claims) claim()
    table.beatNow(other)
    table.beatNow(third)
    coordinator.onRead(table.beatNow(own))
    await settle()
    await clock.advance(nodeHeartbeatMs)
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += nodeHeartbeatMs) await beat()
  }
  return { clock, table, workers, coordinator, life, beat, pass }
}

test('a node that is alone opens all shards, and then it is settled', async () => {
  const { coordinator, workers, beat } = setUp()
  let isSettled = false
  void coordinator.settled().then(() => (isSettled = true))
  await beat()
  assert.deepEqual(workers.calls, [])
  coordinator.begin(workers)
  await settle()
  assert.deepEqual(
    [...workers.opened].toSorted((a, b) => a - b),
    [0, 1, 2, 3],
  )
  assert(!isSettled)
  await beat()
  assert(isSettled)
  assert.equal(workers.calls.length, shards)
  assert.deepEqual(
    coordinator.openings(),
    [0, 1, 2, 3].map((shard) => ({ shard, boot: own.boot })),
  )
  assert(coordinator.has(0))
})

test('a server goes on without the owners of a database that is lost after the join', async () => {
  const { clock, coordinator, workers, life } = setUp()
  coordinator.begin(workers)
  let isOver = false
  void coordinator.settled().then(() => (isOver = true))
  await clock.advance(settleMsMax - 1)
  assert.deepEqual([isOver, life.warnings.length], [false, 0])
  await clock.advance(1)
  assert.deepEqual([isOver, life.warnings.length], [true, 1])
})

test('a shard that could not be opened is opened after the next heartbeat, and not by a worker that does not serve', async () => {
  const { coordinator, workers, beat, life } = setUp()
  workers.failure = new Error('the database is away')
  coordinator.begin(workers)
  await beat()
  assert.equal(workers.opened.size, 0)
  assert.equal(life.warnings.length, shards)
  await beat()
  assert.equal(life.warnings.length, shards)
  workers.failure = undefined
  workers.canOpen = false
  await beat()
  assert.equal(life.warnings.length, shards)
  workers.canOpen = true
  await beat()
  assert.equal(workers.opened.size, shards)
})

test('workers learn the routes when they change, and only then', async () => {
  const { coordinator, table, workers, beat } = setUp()
  coordinator.begin(workers)
  await beat()
  await beat()
  const { length } = workers.routes
  await beat()
  assert.equal(workers.routes.length, length)
  table.add(other)
  await beat()
  assert.equal(workers.routes.length, length + 1)
  assert.deepEqual(
    workers.routes.at(-1)?.nodes.map(({ boot }) => boot),
    [own.boot, other.boot],
  )
  assert.deepEqual(coordinator.routes(), workers.routes.at(-1))
})

test('shards go to a node that joins, one at a time, and are closed before the row changes', async () => {
  const { coordinator, table, workers, beat, pass } = setUp()
  coordinator.begin(workers)
  await beat()
  table.add(other)
  await pass(handOverPauseMs - nodeHeartbeatMs)
  assert(!workers.calls.some((call) => call.startsWith('leave')))
  await pass(5_000)
  const { shards: rows } = table.readNow()
  const moved = rows.filter(({ boot }) => boot === other.boot)
  assert(moved.length > 0 && moved.length < shards)
  for (const { shard } of moved) {
    assert(!workers.opened.has(shard))
    assert(workers.calls.includes(`leave ${shard}`))
    assert(!coordinator.has(shard))
  }
  assert.equal(workers.opened.size, shards - moved.length)
})

test('a node that joins and starts its workers late gets shards when it has served for as long as any other, and the last owner has them until then', async () => {
  const { coordinator, table, workers, beat, pass } = setUp()
  coordinator.begin(workers)
  await beat()
  table.joinNow(other)
  await pass(16_000 + handOverPauseMs)
  assert(!workers.calls.some((call) => call.startsWith('leave')))
  assert.equal(workers.opened.size, shards)
  await table.started(other)
  await pass(handOverPauseMs - nodeHeartbeatMs)
  assert(!workers.calls.some((call) => call.startsWith('leave')))
  await pass(5_000)
  assert(table.readNow().shards.some(({ boot }) => boot === other.boot))
})

test('nodes that start together take their own shards as soon as they serve, without moving one', async () => {
  const { coordinator, table, workers, beat } = setUp()
  table.leaveNow(own)
  for (const node of [own, other]) table.joinNow(node)
  await beat()
  coordinator.begin(workers)
  await beat()
  assert(workers.opened.size > 0 && workers.opened.size < shards)
  assert(!workers.calls.some((call) => call.startsWith('leave')))
})

test('the row of a node says that it serves from when its workers do, whatever it is told before', async () => {
  const { coordinator, table, workers, beat } = setUp()
  const stateOf = (): unknown => table.rows.find(({ name }) => name === own.name)?.state
  table.leaveNow(own)
  table.joinNow(own)
  await beat()
  assert.equal(stateOf(), 'starting')
  for (const state of ['leaving', 'serving'] as const) {
    await table.setState(own.name, state)
    assert.equal(stateOf(), state)
    await beat()
  }
  assert.equal(stateOf(), 'starting', 'it was drained, and taken back')
  table.failure = new Error('the database is away')
  coordinator.begin(workers)
  await settle()
  assert.equal(stateOf(), 'starting')
  table.failure = undefined
  await beat()
  assert.equal(stateOf(), 'serving')
  await table.setState(own.name, 'leaving')
  await beat()
  assert.equal(stateOf(), 'leaving')
})

test('a node that was told to leave while it starts leaves once it can, and one that starts takes nothing from it', async () => {
  const { coordinator, table, workers, beat, pass, life } = setUp()
  await table.setState(own.name, 'leaving')
  coordinator.begin(workers)
  await beat()
  table.joinNow(other)
  await pass(5_000)
  assert.equal(workers.opened.size, shards)
  assert.equal(coordinator.routes().nodes.length, 2)
  await table.started(other)
  await pass(5_000)
  assert.equal(workers.opened.size, 0)
  await beat()
  assert.equal(life.left, 1)
})

test('a shard that a worker could not close stays here', async () => {
  const { coordinator, table, workers, beat, pass, life } = setUp()
  coordinator.begin(workers)
  await beat()
  table.add(other)
  await pass(handOverPauseMs - nodeHeartbeatMs)
  workers.failure = new Error('the worker died')
  await pass(2_000)
  assert(life.warnings.some((text) => text === 'a shard could not be handed over'))
  assert.deepEqual(
    table.readNow().shards.map(({ boot }) => boot),
    [own.boot, own.boot, own.boot, own.boot],
  )
})

test('a node that was evicted drops everything, and claims what is left for it in its next life', async () => {
  const { coordinator, table, workers, beat } = setUp()
  coordinator.begin(workers)
  await beat()
  await coordinator.evicted()
  assert.equal(workers.opened.size, 0)
  assert.equal(workers.calls.filter((call) => call.startsWith('drop')).length, shards)
  assert.deepEqual(coordinator.openings(), [])
  assert(!coordinator.has(0))
  await table.leave(own)
  const again = { ...own, boot: 'own-2' }
  table.add(again)
  coordinator.joined(again)
  coordinator.onRead(table.beatNow(again))
  await settle()
  assert.equal(workers.opened.size, shards)
  assert.deepEqual(new Set(table.readNow().shards.map(({ boot }) => boot)), new Set(['own-2']))
})

test('the eviction of a node is over when its workers have closed all shards, also one that was being opened', async () => {
  const { coordinator, workers, beat, table } = setUp()
  coordinator.begin(workers)
  await beat()
  workers.opened.delete(0)
  coordinator.onRead(table.beatNow(own))
  let close = skip
  workers.untilClosed = new Promise((resolve) => (close = resolve))
  let isOver = false
  const evicted = coordinator.evicted().then(() => (isOver = true))
  await settle()
  assert.deepEqual(
    [isOver, workers.calls.filter((call) => call.startsWith('drop')).length],
    [false, shards],
  )
  close()
  await evicted
  assert.equal(workers.opened.size, 0)
})

test('a node that was told to leave and then evicted knows that in its next life, until it is told to stay', async () => {
  const { coordinator, table, beat } = setUp()
  await beat()
  assert(!coordinator.isLeaving)
  await table.setState(own.name, 'leaving')
  await beat()
  assert(coordinator.isLeaving)
  await coordinator.evicted()
  await table.leave(own)
  const again = { ...own, boot: 'own-2' }
  table.add(again, 'leaving')
  coordinator.joined(again)
  assert(coordinator.isLeaving)
  await table.setState(own.name, 'serving')
  coordinator.onRead(table.beatNow(again))
  assert(!coordinator.isLeaving)
})

test('a node hands nothing over to one that it cannot reach, and goes on when it can', async () => {
  const { coordinator, table, workers, life, beat, pass } = setUp()
  coordinator.begin(workers)
  await pass(1_000)
  table.add(other)
  await pass(1_000)
  life.isReached = false
  await table.setState(own.name, 'leaving')
  workers.calls.length = 0
  await pass(2_000)
  assert.deepEqual(workers.calls, [])
  assert.equal(workers.opened.size, shards)
  assert.equal(life.warnings.filter((text) => text.includes('cannot reach')).length, 1)
  life.isReached = true
  await beat()
  assert.equal(workers.opened.size, 0)
})

test('a node that leaves hands its shards over without waiting for heartbeats, and knows at once where they are', async () => {
  const { coordinator, table, workers, beat, pass } = setUp()
  coordinator.begin(workers)
  await pass(1_000)
  table.add(other)
  await pass(1_000)
  await table.setState(own.name, 'leaving')
  // One that is older than all hand-overs.
  const stale = table.beatNow(own)
  await beat()
  assert.deepEqual(
    coordinator.routes().owners.map(({ boot }) => boot),
    Array(shards).fill(other.boot),
  )
  assert.deepEqual(workers.routes.at(-1)?.owners, coordinator.routes().owners)
  workers.calls.length = 0
  coordinator.onRead(stale)
  await settle()
  assert.deepEqual(workers.calls, [])
  assert.equal(coordinator.routes().owners[0]?.boot, other.boot)
})

test('a drained node hands everything over and then ends, once', async () => {
  const { coordinator, table, workers, beat, pass, life } = setUp()
  coordinator.begin(workers)
  await beat()
  table.add(other)
  await table.setState(own.name, 'leaving')
  await pass(leavePauseMs + nodeHeartbeatMs)
  assert.equal(workers.opened.size, 0)
  assert.equal(life.left, 1)
  assert.deepEqual(
    table.readNow().shards.map(({ boot }) => boot),
    [other.boot, other.boot, other.boot, other.boot],
  )
})

test('a drained node stays until its shards are claimed, because it is the way of its clients to them, but not forever', async () => {
  for (const afterMs of [6_000, undefined]) {
    const { coordinator, table, workers, beat, pass, life } = setUp()
    coordinator.begin(workers)
    await beat()
    table.add(other)
    life.claims = false
    await table.setState(own.name, 'leaving')
    await pass(afterMs ?? ownerWaitMsMax)
    assert.equal(life.left, 0)
    life.claims = afterMs !== undefined
    await pass(2 * nodeHeartbeatMs)
    assert(life.left > 0)
  }
})

test('a drained node hands over a few shards at a time, and the next ones when those are claimed, or after a moment', async () => {
  const { coordinator, table, workers, beat, pass, life } = setUp({
    shards: 3 * handOversLeavingMax,
  })
  coordinator.begin(workers)
  await beat()
  table.add(other)
  life.claims = false
  await table.setState(own.name, 'leaving')
  const given = (): number => table.shards.filter(({ boot }) => boot === other.boot).length
  await pass(2 * nodeHeartbeatMs)
  assert.equal(given(), handOversLeavingMax)
  life.claims = true
  await beat()
  assert.equal(given(), 2 * handOversLeavingMax)
  life.claims = false
  await pass(claimPaceMs - nodeHeartbeatMs)
  assert.equal(given(), 2 * handOversLeavingMax)
  await pass(2 * nodeHeartbeatMs)
  assert.equal(given(), 3 * handOversLeavingMax)
})

test('a drained node gives its shards to the next node in their rank if it cannot reach the first', async () => {
  const { coordinator, table, workers, beat, pass, life } = setUp()
  coordinator.begin(workers)
  await beat()
  for (const node of [other, third]) table.add(node)
  await pass(1_000)
  life.isReached = false
  await table.setState(own.name, 'leaving')
  await pass(2_000)
  assert.deepEqual(new Set(table.shards.map(({ boot }) => boot)), new Set([third.boot]))
  assert.equal(workers.opened.size, 0)
})

test('a node ends no earlier than clients could find another one, counted from when there is one', async () => {
  const { coordinator, table, workers, beat, pass, life } = setUp()
  coordinator.begin(workers)
  await beat()
  await table.setState(own.name, 'leaving')
  // Nobody can take its shards, so it goes on as ever.
  await pass(leavePauseMs)
  table.add(other)
  await pass(leavePauseMs)
  assert.deepEqual([workers.opened.size, life.left], [0, 0])
  await beat()
  assert.equal(life.left, 1)
})

test('a server that ends hands everything over first, unless no other node can take it', async () => {
  const { clock, coordinator, table, workers, beat, pass, life } = setUp()
  coordinator.begin(workers)
  await beat()
  await coordinator.handOverAll()
  assert.equal(workers.opened.size, shards)
  table.add(other)
  await beat()
  let isOver = false
  void coordinator.handOverAll().then(() => (isOver = true))
  await pass(leavePauseMs)
  assert(!isOver)
  await beat()
  assert(isOver)
  assert.equal(workers.opened.size, 0)
  assert.equal(life.left, 0)
  assert.equal(clock.timers, 0)
})

test('a server that ends waits for a limited time, and not for nodes that end, too', async () => {
  const { coordinator, table, workers, beat, pass } = setUp()
  coordinator.begin(workers)
  await beat()
  table.add(other)
  await beat()
  workers.failure = new Error('the worker hangs')
  let isOver = false
  const end = (): void => void coordinator.handOverAll().then(() => (isOver = true))
  end()
  await pass(handOverAllMsMax - 1_000)
  assert(!isOver)
  await pass(1_500)
  assert(isOver)
  isOver = false
  end()
  await beat()
  assert(!isOver)
  await table.setState(other.name, 'leaving')
  await beat()
  assert(isOver)
})

test('a drained node that cannot end yet is asked again, and opens shards again if it is told to stay', async () => {
  const { coordinator, table, workers, beat, pass, life } = setUp()
  life.mayEnd = false
  coordinator.begin(workers)
  await beat()
  table.add(other)
  await table.setState(own.name, 'leaving')
  assert(!coordinator.isFree)
  await pass(leavePauseMs + nodeHeartbeatMs)
  assert(coordinator.isFree)
  const asked = life.left
  await beat()
  assert.equal(life.left, asked + 1)
  await table.setState(own.name, 'serving')
  await table.leave(other)
  await pass(1_000)
  assert.equal(workers.opened.size, shards)
  assert(!coordinator.isFree)
  coordinator.evicted()
  assert(coordinator.isFree)
})

test('what is evicted from one database keeps its shards of the others', async () => {
  const { table, workers, beat } = setUp()
  const coordinator = new ShardCoordinator({
    clock: new FakeClock(),
    table,
    shards: [1, 3],
    log: { debug: skip, info: skip, warn: skip, error: skip },
    onRoutes: skip,
    onLeft: () => true,
    reaches: async () => true,
  })
  coordinator.joined(own)
  coordinator.begin(workers)
  workers.opened.add(0)
  workers.opened.add(2)
  const read = table.beatNow(own)
  coordinator.onRead({ ...read, shards: read.shards.filter(({ shard }) => shard % 2 === 1) })
  await settle()
  assert.deepEqual(
    [...workers.opened].toSorted((a, b) => a - b),
    [0, 1, 2, 3],
  )
  await beat()
  await coordinator.evicted()
  assert.deepEqual(
    [...workers.opened].toSorted((a, b) => a - b),
    [0, 2],
  )
  assert.deepEqual(
    coordinator.routes().owners.map(({ shard, boot }) => `${shard}${boot}`),
    ['1', '3'],
  )
})

test('a worker that starts while the database does not respond opens none of its shards, so the others need not wait', async () => {
  const { clock, coordinator, workers, beat } = setUp()
  coordinator.begin(workers)
  await beat()
  await beat()
  assert.equal(coordinator.openings().length, shards)
  await clock.advance(nodeLeaseMs + 1)
  assert.deepEqual(coordinator.openings(), [])
  await beat()
  assert.equal(coordinator.openings().length, shards)
})

test('a worker that starts while shards leave this node does not open these', async () => {
  const { coordinator, table, workers, beat, pass } = setUp()
  coordinator.begin(workers)
  await beat()
  table.add(other)
  await table.setState(own.name, 'leaving')
  workers.untilClosed = new Promise(skip)
  await pass(1_000)
  assert.deepEqual([workers.opened.size, coordinator.openings()], [shards, []])
})
