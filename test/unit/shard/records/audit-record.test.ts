/** Recorded calls as records of a shard. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditId, firstAuditId } from '../../../../src/shard/records/audit-record.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { encodeJson } from '../../../../src/shard/records/record.ts'
import {
  describeKey,
  logFieldsOf,
  queueOfRecord,
  shardRecords,
} from '../../../../src/shard/shard-records.ts'

const id = '01a21470f8148e11b335'

test('checks of files know the records of calls, which belong to no bot', () => {
  const key = kinds.audit.key(id)
  assert.equal(key.toString('hex'), `63${id}`)
  assert.equal(kinds.audit.fields(key).id, id)
  assert.equal(shardRecords.recordFault(key, encodeJson(key, { timeMs: 1 })), undefined)
  assert(shardRecords.mayBeKey(0x63, key.length))
  assert.equal(queueOfRecord(key), undefined)
  assert.equal(describeKey(key), `recorded call ${id}`)
  assert.deepEqual(logFieldsOf(key), { record: 'recorded call' })
})

test('ids are in the order of time, and those of one time begin with the lowest', () => {
  assert.equal(auditId(0x01_a2_14_70_f8_14, '8e11b335'), id)
  assert(firstAuditId(0x01_a2_14_70_f8_14) <= id && firstAuditId(0x01_a2_14_70_f8_15) > id)
  assert.equal(firstAuditId(Infinity), 'ffffffffffff00000000')
  assert.equal(firstAuditId(-1), '0'.repeat(20))
})
