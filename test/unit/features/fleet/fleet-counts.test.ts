import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addFleetCounts,
  type FleetCounts,
  noFleetCounts,
  older,
} from '../../../../src/features/fleet/fleet-counts.ts'

const some: FleetCounts = {
  polling: 1,
  webhook: 10,
  health: { healthy: 1, degraded: 2, behind: 6, failing: 3, paused: 4, unpolled: 5 },
  paused: 5,
  fought: 4,
  pending: 6,
  pendingBytes: 7,
  deadLetters: 8,
  oldest: { botId: 101, isTest: true, ageS: 9 },
}

function at(botId: number, ageS: number): FleetCounts['oldest'] {
  return { botId, isTest: false, ageS }
}

test('every sum is added, and the oldest update is the oldest of both', () => {
  assert.deepEqual(addFleetCounts(noFleetCounts, some), some)
  assert.deepEqual(addFleetCounts(some, { ...some, oldest: undefined }), {
    polling: 2,
    webhook: 20,
    health: { healthy: 2, degraded: 4, behind: 12, failing: 6, paused: 8, unpolled: 10 },
    paused: 10,
    fought: 8,
    pending: 12,
    pendingBytes: 14,
    deadLetters: 16,
    oldest: { botId: 101, isTest: true, ageS: 9 },
  })
})

test('of two updates of the same age, the one of the lower bot id counts', () => {
  assert.deepEqual(older(at(2, 5), at(1, 4)), at(2, 5))
  assert.deepEqual(older(at(2, 5), at(1, 5)), at(1, 5))
  assert.deepEqual(older(undefined, at(1, 0)), at(1, 0))
})
