import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TokenRefusals, type RefusedClients } from '../../../src/admission/token-refusals.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'

/** Applies the rule of the shared table, for one worker. */
function makeClients(): RefusedClients {
  const lastAtOnceMs = new Map<string, number>()
  return {
    mayRefuseNow(address, nowMs) {
      if (nowMs - (lastAtOnceMs.get(address) ?? -Infinity) < 3_000) return false
      lastAtOnceMs.set(address, nowMs)
      return true
    },
  }
}

function setUp(heldMax?: number) {
  const clock = new FakeClock()
  const pacing = new TokenRefusals(clock, makeClients(), heldMax)
  const log: string[] = []
  const startMs = clock.monotonicMs()
  async function refuse(address: string): Promise<void> {
    const release = await pacing.hold(address)
    log.push(`${address} ${release} at ${clock.monotonicMs() - startMs}`)
  }
  return { clock, pacing, log, refuse }
}

test('the first refusal is sent immediately, and the next one waits three seconds', async () => {
  const { clock, log, refuse } = setUp()
  void refuse('a')
  void refuse('a')
  void refuse('b')
  await clock.advance(1_000)
  void refuse('a')
  await clock.advance(10_000)
  assert.deepEqual(log, ['a send at 0', 'b send at 0', 'a send at 3000', 'a send at 4000'])
  void refuse('a')
  await settle()
  assert.equal(log.at(-1), 'a send at 11000')
})

test('past the limit the response is sent and its connection is closed', async () => {
  const { clock, pacing, log, refuse } = setUp(2)
  for (let count = 0; count < 5; count++) void refuse('a')
  await settle()
  assert.equal(pacing.held, 2)
  assert.deepEqual(log, ['a send at 0', 'a close at 0', 'a close at 0'])
  await clock.advance(3_000)
  assert.equal(pacing.held, 0)
  assert.equal(log.length, 5)
})

test('a thousand refusals may wait in a worker', async () => {
  const { pacing, log, refuse } = setUp()
  for (let count = 0; count < 1_002; count++) void refuse('a')
  await settle()
  assert.equal(pacing.held, 1_000)
  assert.deepEqual(log, ['a send at 0', 'a close at 0'])
})

test('a drained worker sends everything that waits', async () => {
  const { clock, pacing, log, refuse } = setUp()
  for (let count = 0; count < 4; count++) void refuse('a')
  pacing.releaseAll()
  await settle()
  assert.equal(log.length, 4)
  void refuse('a')
  await settle()
  assert.equal(log.at(-1), 'a send at 0')
  assert.equal(log.length, 5)
  assert.equal(clock.timers, 0)
})
