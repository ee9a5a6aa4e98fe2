import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditCallsMax, AuditTrail } from '../../../src/access/audit-trail.ts'
import {
  type AuditRecord,
  auditId,
  type RecordedCall,
} from '../../../src/shard/records/audit-record.ts'
import { lookedRecordCostMs } from '../../../src/queue/kept/look-payer.ts'
import { TestPayer } from '../../support/http/test-payer.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'

async function open() {
  const bots = await BotsLife.open({ shards: 1 })
  const shard = () => bots.registry.bots.shardAt(0)
  return { shard, trail: new AuditTrail(shard) }
}

function call(timeMs: number, more: Partial<AuditRecord> = {}): RecordedCall {
  const [operation, path, result] = ['pauseDeliveries', 'POST /v1/bots/100/pause', 'ok']
  const record = { timeMs, operation, call: path, botId: 100, result, requestId: 'r', ...more }
  return { id: auditId(timeMs, (timeMs % 1_000).toString(16).padStart(8, '0')), record }
}

const timesOf = (calls: readonly RecordedCall[]) => calls.map(({ record }) => record.timeMs)

test('calls are listed from the last one back, whatever the order in which they were stored', async () => {
  const { shard, trail } = await open()
  await trail.append([call(3_000), call(1_000)])
  await trail.append([call(2_000)])
  assert.deepEqual(timesOf(await trail.read({ limit: 10 })), [3_000, 2_000, 1_000])
  const first = await trail.read({ limit: 2 })
  assert.deepEqual(timesOf(first), [3_000, 2_000])
  const rest = await trail.read({ limit: 2, before: first.at(-1)!.id })
  assert.deepEqual(timesOf(rest), [1_000])
  // What a new owner of the shard finds.
  assert.deepEqual(await new AuditTrail(shard).read({ limit: 10 }), await trail.read({ limit: 10 }))
})

test('a list over many calls that finds none pays for each of its reads', async () => {
  const { trail } = await open()
  await trail.append(Array.from({ length: 600 }, (_, nth) => call(nth * 1_000, {})))
  const payer = new TestPayer()
  assert.deepEqual(await trail.read({ limit: 10, botId: 7 }, payer), [])
  const chargedMs = payer.charges.reduce((sum, each) => sum + each, 0)
  assert.ok(Math.abs(chargedMs - 600 * lookedRecordCostMs) < 1e-6, `${chargedMs}`)
  payer.isOver = 'refused'
  await assert.rejects(trail.read({ limit: 10 }, payer), { code: 'TOO_MANY_REQUESTS' })
})

test('a list has the calls of a time, a key, an operation or a bot', async () => {
  const { trail } = await open()
  const key = { id: '0123456789abcdef', name: 'deploy' }
  await trail.append([
    call(1_000),
    call(2_000, { key }),
    call(3_000, { operation: 'removeBot' }),
    call(4_000, { botId: 200 }),
    call(5_000, { botId: undefined, botIds: [300, 301] }),
  ])
  const times = async (question: object) => timesOf(await trail.read({ limit: 10, ...question }))
  assert.deepEqual(await times({ sinceMs: 2_000, untilMs: 4_000 }), [3_000, 2_000])
  assert.deepEqual(await times({ key: key.id }), [2_000])
  assert.deepEqual(await times({ key: 'admin' }), [5_000, 4_000, 3_000, 1_000])
  assert.deepEqual(await times({ operation: 'removeBot' }), [3_000])
  assert.deepEqual(await times({ botId: 200 }), [4_000])
  assert.deepEqual(await times({ botId: 301 }), [5_000])
  assert.deepEqual(await times({ botId: 200, key: key.id }), [])
})

test('a call that is stored again is there once, and the oldest above the bound go', async () => {
  const { shard, trail } = await open()
  const all = Array.from({ length: auditCallsMax }, (_, nth) => call(1_000 + nth))
  await trail.append(all)
  await trail.append(all.slice(0, 10))
  assert.equal((await shard().lists.callIds()).length, auditCallsMax)
  await new AuditTrail(shard).append([call(100_000), call(100_001)])
  const ids = await shard().lists.callIds()
  assert.equal(ids.length, auditCallsMax)
  assert.deepEqual([ids[0], ids.at(-1)], [all[2]!.id, call(100_001).id])
  const found = await trail.read({ limit: 20_000, operation: 'pauseDeliveries' })
  assert.equal(found.length, auditCallsMax)
})
