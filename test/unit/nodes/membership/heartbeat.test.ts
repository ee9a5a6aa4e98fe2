import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Heartbeat, nodeExtraBeatMs } from '../../../../src/nodes/membership/heartbeat.ts'
import { nodeEvictedMs, nodeHeartbeatMs } from '../../../../src/nodes/membership/limits.ts'
import { nodeLeaseMs } from '../../../../src/process/limits.ts'
import type { HeartbeatRead } from '../../../../src/store/node-table.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { MemoryNodeTable } from '../../../support/server/memory-node-table.ts'

interface Life {
  readonly clock: FakeClock
  readonly table: MemoryNodeTable
  readonly heartbeat: Heartbeat
  /** The ends of the lease, as they were told. */
  readonly leases: number[]
  /** The beats of the own row, in the reads that were passed on. */
  readonly reads: (string | undefined)[]
  /** Level and text of what was logged. */
  readonly logged: string[]
  evictions: number
}

const self = { name: 'own', boot: 'own-boot' }

function row(name: string): Parameters<MemoryNodeTable['add']>[0] {
  return { name, boot: `${name}-boot`, address: '', workers: 1 }
}

function lifeOf(): Life {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.add(row('own'))
  const logged: string[] = []
  const leases: number[] = []
  const reads: (string | undefined)[] = []
  const logger = (level: string) => (_fields: object, text: string) =>
    void logged.push(`${level}: ${text}`)
  const log = {
    debug: logger('debug'),
    info: logger('info'),
    warn: logger('warn'),
    error: logger('error'),
  }
  const onLease = (validUntilMs: number): void => void leases.push(validUntilMs)
  const onEvicted = (): void => void (life.evictions += 1)
  const onRead = ({ nodes }: HeartbeatRead): void =>
    void reads.push(nodes.find(({ name }) => name === 'own')?.beat)
  const heartbeat = new Heartbeat({ clock, log, table, self, onLease, onRead, onEvicted })
  const life = { clock, table, heartbeat, leases, reads, logged, evictions: 0 }
  return life
}

test('every heartbeat extends the lease, counted from when it was sent', async () => {
  const { clock, table, heartbeat, leases } = lifeOf()
  const startMs = clock.machineMs()
  await heartbeat.start()
  assert.deepEqual(leases, [startMs + nodeLeaseMs])
  table.holdsBeats = true
  await clock.advance(nodeHeartbeatMs)
  await clock.advance(600)
  assert.equal(leases.length, 1)
  table.holdsBeats = false
  table.held.shift()?.()
  await settle()
  assert.deepEqual(leases[1], startMs + nodeHeartbeatMs + nodeLeaseMs)
  heartbeat.close()
})

test('one heartbeat is under way at a time, and a slow one is followed at once, others after a pause', async () => {
  const { clock, table, heartbeat } = lifeOf()
  await heartbeat.start()
  table.holdsBeats = true
  await clock.advance(10 * nodeHeartbeatMs)
  assert.equal(table.held.length, 1)
  table.holdsBeats = false
  table.held.shift()?.()
  await clock.advance(0)
  assert.equal(table.calls.length, 3)
  await clock.advance(nodeHeartbeatMs - 1)
  assert.equal(table.calls.length, 3)
  await clock.advance(1)
  assert.equal(table.calls.length, 4)
  heartbeat.close()
})

test('a table that fails extends no lease, is logged once, and is asked again', async () => {
  const { clock, table, heartbeat, leases, logged } = lifeOf()
  await heartbeat.start()
  for (let outage = 1; outage <= 2; outage++) {
    table.failure = new Error('connection refused')
    const before = leases.length
    await clock.advance(5 * nodeHeartbeatMs)
    assert.equal(leases.length, before)
    assert.equal(table.calls.length, before + 5 * outage)
    table.failure = undefined
    await clock.advance(nodeHeartbeatMs)
    assert.equal(leases.length, before + 1)
    assert.equal(leases.at(-1), clock.machineMs() + nodeLeaseMs)
  }
  const away = 'error: the database does not respond: none of its shards is served until it does'
  const back = 'info: the database responds again'
  const over = 'warn: the lease of this server was over: polls were held back and no delivery began'
  assert.deepEqual(logged, [away, over, back, away, over, back])
  heartbeat.close()
})

test('a first heartbeat that fails is the error of the start, and no other follows', async () => {
  const { clock, table, heartbeat } = lifeOf()
  table.failure = new Error('connection refused')
  await assert.rejects(heartbeat.start(), /connection refused/)
  await clock.advance(10 * nodeHeartbeatMs)
  assert.deepEqual(table.calls, ['beat'])
})

test('a node that was removed is told once, extends no lease, and beats no more', async () => {
  const life = lifeOf()
  const { clock, table, heartbeat, leases, logged } = life
  await heartbeat.start()
  const [own] = table.rows
  assert(own !== undefined && table.evictNow(own))
  await clock.advance(10 * nodeHeartbeatMs)
  assert.equal(life.evictions, 1)
  assert.equal(leases.length, 1)
  assert.deepEqual(table.calls, ['beat', 'beat'])
  assert.match(logged.join(), /error: another server has removed this one/)
  assert.deepEqual(table.rows, [])
})

test('a node that was removed before its first heartbeat is told, too', async () => {
  const life = lifeOf()
  const [own] = life.table.rows
  assert(own !== undefined && life.table.evictNow(own))
  await life.heartbeat.start()
  await life.clock.advance(10 * nodeHeartbeatMs)
  assert.equal(life.evictions, 1)
  assert.deepEqual(life.leases, [])
  assert.deepEqual(life.table.calls, ['beat'])
})

test('another node that stands still is removed, and one that beats stays', async () => {
  const { clock, table, heartbeat, logged } = lifeOf()
  table.add(row('still'))
  table.add(row('alive'))
  await heartbeat.start()
  const beats = nodeEvictedMs / nodeHeartbeatMs
  for (let nth = 1; nth <= beats; nth++) {
    await clock.advance(nodeHeartbeatMs)
    table.beatNow(row('alive'))
    assert.equal(table.rows.length, 3, `heartbeat ${nth}`)
  }
  await clock.advance(nodeExtraBeatMs)
  assert.deepEqual(
    table.rows.map(({ name }) => name),
    ['own', 'alive'],
  )
  assert.deepEqual(logged, ['info: a node that stood still was removed from the database'])
  heartbeat.close()
})

test('after close nothing is sent, and an answer that comes later extends no lease', async () => {
  const life = lifeOf()
  const { clock, table, heartbeat, leases } = life
  await heartbeat.start()
  table.holdsBeats = true
  await clock.advance(nodeHeartbeatMs)
  heartbeat.close()
  table.evictNow({ ...self, beat: '2' })
  table.held.shift()?.()
  await clock.advance(10 * nodeHeartbeatMs)
  assert.equal(leases.length, 1)
  assert.equal(life.evictions, 0)
  assert.deepEqual(table.calls, ['beat', 'beat'])
  assert.equal(clock.timers, 0)
})

test('the rows of every heartbeat are passed on, but not those of one that failed or found no own row', async () => {
  const { clock, table, heartbeat, reads } = lifeOf()
  await heartbeat.start()
  await clock.advance(nodeHeartbeatMs)
  assert.deepEqual(reads, ['0', '1'])
  table.failure = new Error('connection refused')
  await clock.advance(2 * nodeHeartbeatMs)
  assert.deepEqual(reads, ['0', '1'])
  table.failure = undefined
  await clock.advance(nodeHeartbeatMs)
  assert.deepEqual(reads, ['0', '1', '2'])
  const [own] = table.rows
  assert(own !== undefined && table.evictNow(own))
  await clock.advance(nodeHeartbeatMs)
  assert.equal(reads.length, 3)
})

test('a change is read at once, and the other heartbeats come when they would have come without it', async () => {
  const { clock, table, heartbeat } = lifeOf()
  const sentAtMs: number[] = []
  const startMs = clock.machineMs()
  const beatNow = table.beatNow.bind(table)
  table.beatNow = (node) => {
    sentAtMs.push(clock.machineMs() - startMs)
    return beatNow(node)
  }
  await heartbeat.start()
  await clock.advance(100)
  table.onChange?.()
  await clock.advance(0)
  assert.deepEqual(sentAtMs, [0, 100])
  await clock.advance(2 * nodeHeartbeatMs - 100)
  assert.deepEqual(sentAtMs, [0, 100, nodeHeartbeatMs, 2 * nodeHeartbeatMs])
  heartbeat.close()
})

test('however often the rows change, extra heartbeats keep their distance', async () => {
  const { clock, table, heartbeat } = lifeOf()
  await heartbeat.start()
  for (let ms = 0; ms < 200; ms++) {
    table.onChange?.()
    await clock.advance(1)
  }
  assert.equal(table.calls.length, 1 + 200 / nodeExtraBeatMs)
  await clock.advance(nodeHeartbeatMs)
  assert.equal(table.calls.length, 2 + 200 / nodeExtraBeatMs)
  heartbeat.close()
})

test('a change during a heartbeat is read by another one, because the first may have been too early', async () => {
  const { clock, table, heartbeat } = lifeOf()
  await heartbeat.start()
  table.holdsBeats = true
  await clock.advance(nodeHeartbeatMs)
  table.onChange?.()
  await clock.advance(nodeExtraBeatMs)
  assert.equal(table.calls.length, 2)
  table.holdsBeats = false
  table.held.shift()?.()
  await clock.advance(0)
  assert.equal(table.calls.length, 3)
  heartbeat.close()
})

test('a node is removed when its row has stood still for long enough, not only by a heartbeat of the rhythm', async () => {
  const { clock, table, heartbeat } = lifeOf()
  table.add(row('still'))
  await heartbeat.start()
  await clock.advance(100)
  table.beatNow(row('still'))
  table.onChange?.()
  await clock.advance(0)
  await clock.advance(nodeEvictedMs)
  assert.equal(table.rows.length, 2)
  await clock.advance(1)
  assert.equal(table.rows.length, 1)
  heartbeat.close()
})

test('after an eviction the rows are read at once, because other connections are told only', async () => {
  const { clock, table, heartbeat, reads } = lifeOf()
  table.add(row('still'))
  await heartbeat.start()
  while (table.rows.length > 1) await clock.advance(1)
  const before = reads.length
  await clock.advance(nodeExtraBeatMs)
  assert.equal(reads.length, before + 1)
  heartbeat.close()
})

test('a closed heartbeat, and one whose start failed, ignore changes', async () => {
  for (const fails of [true, false]) {
    const { clock, table, heartbeat } = lifeOf()
    if (fails) table.failure = new Error('connection refused')
    await heartbeat.start().catch(() => undefined)
    heartbeat.close()
    const change = table.onChange
    change?.()
    await clock.advance(nodeHeartbeatMs)
    assert.deepEqual([change, table.calls.length], [undefined, 1])
  }
})
