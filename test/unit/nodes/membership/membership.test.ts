import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeEvictedMs, nodeObservationGapMs } from '../../../../src/nodes/membership/limits.ts'
import { nodeLeaseMs } from '../../../../src/process/limits.ts'
import { Membership } from '../../../../src/nodes/membership/membership.ts'
import type { NodeRow } from '../../../../src/store/node-table.ts'

function row(name: string, beat: number): NodeRow {
  return { name, boot: `${name}-boot`, beat: `${beat}`, address: '', workers: 1, state: 'serving' }
}

/** Reads the same rows from 0 on every 500 ms, and at `toMs`. Returns the names of the rows to evict then. */
function readUntil(membership: Membership, nodes: readonly NodeRow[], toMs: number): string[] {
  for (let atMs = 0; atMs < toMs; atMs += 500) {
    membership.read({ isMember: true, nodes, sentAtMs: atMs, receivedAtMs: atMs })
  }
  const last = { isMember: true, nodes, sentAtMs: toMs, receivedAtMs: toMs }
  return membership.read(last).map(({ name }) => name)
}

test('a node may serve from the moment in which it sent a heartbeat, not from that of its answer', () => {
  const membership = new Membership('own-boot')
  assert.equal(membership.validUntilMs, Number.NEGATIVE_INFINITY)
  membership.read({ isMember: true, nodes: [], sentAtMs: 100, receivedAtMs: 900 })
  assert.equal(membership.validUntilMs, 100 + nodeLeaseMs)
  membership.read({ isMember: false, nodes: [], sentAtMs: 1_000, receivedAtMs: 1_001 })
  assert.equal(membership.validUntilMs, 100 + nodeLeaseMs)
})

test('a lease never becomes shorter', () => {
  const membership = new Membership('own-boot')
  membership.read({ isMember: true, nodes: [], sentAtMs: 500, receivedAtMs: 501 })
  membership.read({ isMember: true, nodes: [], sentAtMs: 100, receivedAtMs: 600 })
  assert.equal(membership.validUntilMs, 500 + nodeLeaseMs)
})

test('a row that was read unchanged for longer than the limit is overdue, and the own row never is', () => {
  const rows = [row('own', 1), row('other', 7)]
  assert.deepEqual(readUntil(new Membership('own-boot'), rows, nodeEvictedMs), [])
  assert.deepEqual(readUntil(new Membership('own-boot'), rows, nodeEvictedMs + 1), ['other'])
})

test('a beat begins the observation of its row anew, and so does a new boot', () => {
  const membership = new Membership('own-boot')
  readUntil(membership, [row('a', 1), row('b', 1), row('c', 1)], 1_400)
  const replaced = { ...row('b', 1), boot: 'another' }
  const nodes = [row('a', 2), replaced, row('c', 1)]
  const read = { isMember: true, nodes, sentAtMs: 1_900, receivedAtMs: 1_900 }
  assert.deepEqual(membership.read(read), [row('c', 1)])
})

test('whoever has not read the rows for a while begins all observations anew', () => {
  for (const [pauseMs, overdue] of [
    [nodeObservationGapMs, 1],
    [nodeObservationGapMs + 1, 0],
  ] as const) {
    const membership = new Membership('own-boot')
    readUntil(membership, [row('other', 1)], nodeEvictedMs)
    const atMs = nodeEvictedMs + pauseMs
    const read = { isMember: true, nodes: [row('other', 1)], sentAtMs: atMs, receivedAtMs: atMs }
    assert.equal(membership.read(read).length, overdue)
  }
})
