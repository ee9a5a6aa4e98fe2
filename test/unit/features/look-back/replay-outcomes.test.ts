import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type QueueAnswers,
  replayOutcomes,
} from '../../../../src/features/look-back/replay-outcomes.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'

const nothing: QueueAnswers = { attempts: [], deadLetters: [], pending: 1, mode: 'webhook' }

function attempt(id: number, status: number | null, error: string | null = null) {
  return { update_id: id, status, error }
}

test('each update that was replayed is delivered, a dead letter again, or waits with its last error', async () => {
  const clock = new FakeClock()
  const rounds: QueueAnswers[] = [
    { ...nothing, attempts: [attempt(3, 503, 'busy'), attempt(1, 200), attempt(2, 503, 'busy')] },
    {
      ...nothing,
      attempts: [attempt(3, null, 'refused')],
      deadLetters: [{ update_id: 2, reason: 'refused' }],
    },
    nothing,
  ]
  let asked = 0
  const outcomes = replayOutcomes([1, 2, 3], clock, async () => rounds[Math.min(asked++, 2)]!)
  for (let round = 0; round < 130; round++) {
    await settle()
    await clock.advance(500)
  }
  const waits = { outcome: 'waits', detail: 'refused' }
  const told = Object.fromEntries(await outcomes)
  assert.deepEqual(told[1], { outcome: 'delivered', detail: null })
  assert.deepEqual(told[3], waits, 'a minute is over')
})

test('nothing is asked again when every outcome is known, and a bot that polls confirms', async () => {
  let asked = 0
  const ask = async (): Promise<QueueAnswers> => {
    asked += 1
    return { ...nothing, pending: 0, mode: 'polling' }
  }
  const outcomes = await replayOutcomes([7], new FakeClock(), ask)
  assert.deepEqual(outcomes.get(7), { outcome: 'confirmed', detail: null })
  assert.equal(asked, 1)
})
