import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeEvictedMs, nodeHeartbeatMs } from '../../../../src/nodes/membership/limits.ts'
import { Member } from '../../../../src/nodes/membership/member.ts'
import type { NodeIdentity } from '../../../../src/store/node-table.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { MemoryNodeTable } from '../../../support/server/memory-node-table.ts'

const node = { name: 'own', address: '10.0.0.1:1', workers: 1 }
const skip = (): void => undefined
const log = { debug: skip, info: skip, warn: skip, error: skip }

function setUp() {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable(4)]
  const connection = table.connect()
  const life = {
    lives: [] as NodeIdentity[],
    leases: [] as number[],
    evicted: 0,
    refused: 0,
    whenEvicted: (): void | Promise<void> => undefined,
  }
  const member = new Member({
    clock,
    log,
    table: connection,
    node,
    onJoined: (self) => void life.lives.push(self),
    onLease: (_boot, validUntilMs) => void life.leases.push(validUntilMs),
    onEvicted() {
      life.evicted += 1
      return life.whenEvicted()
    },
    onRefused: () => void (life.refused += 1),
  })
  return { clock, table, connection, member, life }
}

/** Another node evicts this one, as it does with a row that stands still. */
async function evictOwn(table: MemoryNodeTable): Promise<void> {
  const [row] = table.rows
  assert(row !== undefined)
  await table.evict(row)
}

test('a member beats from its joining on, and its row and its lease are gone after it left', async () => {
  const { clock, table, member, life } = setUp()
  await member.start()
  await clock.advance(4 * nodeHeartbeatMs)
  assert.equal(life.leases.length, 5)
  assert.equal(table.rows[0]?.boot, life.lives[0]?.boot)
  await member.leave()
  assert.deepEqual(table.rows, [])
  await clock.advance(4 * nodeHeartbeatMs)
  assert.equal(life.leases.length, 6)
  assert.equal(life.leases.at(-1), 0)
})

test('a node that was evicted joins again in a new life', async () => {
  const { clock, table, member, life } = setUp()
  await member.start()
  await evictOwn(table)
  await clock.advance(2 * nodeHeartbeatMs)
  const [first, second] = life.lives
  assert(first !== undefined && second !== undefined)
  assert.notEqual(first.boot, second.boot)
  assert.deepEqual([life.evicted, life.refused], [1, 0])
  assert.equal(table.rows[0]?.boot, second.boot)
  const { length } = life.leases
  await clock.advance(2 * nodeHeartbeatMs)
  assert(life.leases.length > length)
})

test('a node that was evicted gets no lease before it has dropped what belongs to others', async () => {
  const { clock, table, member, life } = setUp()
  await member.start()
  let drop = skip
  life.whenEvicted = () => new Promise((resolve) => (drop = resolve))
  await evictOwn(table)
  await clock.advance(8 * nodeHeartbeatMs)
  assert.deepEqual([life.evicted, life.lives.length], [1, 1])
  // The lease of the first life has ended.
  assert.deepEqual(life.leases.slice(1), [0])
  drop()
  await clock.advance(2 * nodeHeartbeatMs)
  assert.equal(life.lives.length, 2)
  assert(life.leases.length > 2)
})

test('a node that was evicted while the database is away joins when it is back', async () => {
  const { clock, table, connection, member, life } = setUp()
  await member.start()
  await evictOwn(table)
  life.whenEvicted = () => void (connection.failure = new Error('the database is away'))
  await clock.advance(8 * nodeHeartbeatMs)
  assert.deepEqual([life.evicted, life.lives.length, life.refused], [1, 1, 0])
  connection.failure = undefined
  await clock.advance(2 * nodeHeartbeatMs)
  assert.equal(life.lives.length, 2)
  assert.equal(table.rows[0]?.boot, life.lives[1]?.boot)
})

test('a node whose name another one has taken meanwhile ends', async () => {
  const { clock, table, member, life } = setUp()
  await member.start()
  await evictOwn(table)
  const taker = { ...node, boot: 'taker', address: '10.0.0.9:1' }
  table.add(taker)
  for (let passedMs = 0; passedMs < nodeEvictedMs && life.refused === 0; ) {
    await clock.advance(nodeHeartbeatMs)
    table.beatNow(taker)
    passedMs += nodeHeartbeatMs
  }
  assert.deepEqual([life.evicted, life.refused], [1, 1])
  assert.deepEqual(
    table.rows.map(({ boot }) => boot),
    ['taker'],
  )
})
