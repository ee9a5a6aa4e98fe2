import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lane } from '../../../src/webhook/lane.ts'
import { Probes } from '../../../src/webhook/probes.ts'

const always = (): boolean => true

function lane(updateId: number): Lane {
  const orderingKey = `key ${updateId}`
  return new Lane({
    updateId,
    orderingKey,
    expiresAtS: 1e9,
    textBytes: 1,
    body: () => Buffer.alloc(0),
  })
}

test('probes are wanted after enough failures in a row, and picked only after a failure', () => {
  const probes = new Probes({ random: () => 0, probeFailuresMin: 2 })
  const parked = lane(1)
  probes.park(parked)
  probes.failed()
  assert.equal(probes.areWanted, false)
  probes.failed()
  assert.equal(probes.areWanted, true)
  probes.succeeded()
  assert.equal(probes.areWanted, false)
  assert.equal(probes.pick(always), undefined)
  probes.failed()
  assert.equal(probes.pick(always), parked)
  assert.equal(probes.pick(always), undefined)
})

test('each parked lane is picked once, at random, and lanes that were served since are left out', () => {
  const draws = [0.99, 0, 0.5, 0.5]
  const probes = new Probes({ random: () => draws.shift() ?? 0 })
  const lanes = [lane(1), lane(2), lane(3), lane(4)]
  for (const each of lanes) probes.park(each)
  probes.failed()
  const picked = Array.from({ length: 4 }, () => probes.pick((each) => each !== lanes[1]))
  assert.equal(picked[0], lanes[3])
  assert.deepEqual(new Set(picked), new Set([lanes[0], lanes[2], lanes[3], undefined]))
})

test('no more lanes are parked than there may be', () => {
  const probes = new Probes({ random: () => 0, lanesMax: 2 })
  for (const id of [1, 2, 3]) probes.park(lane(id))
  probes.failed()
  const picked = [probes.pick(always), probes.pick(always), probes.pick(always)]
  assert.equal(picked.filter((each) => each !== undefined).length, 2)
})
