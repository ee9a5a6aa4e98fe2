import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  Watchdog,
  workerHangMs,
  workerHangSurelyMs,
  workerPingPeriodMs,
} from '../../../../src/process/primary/watchdog.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

/** `answers` says for each question whether it gets a reply; its last value applies to all further questions. */
function setUp(answers: readonly boolean[]) {
  const clock = new FakeClock()
  const seen = { asked: 0, hangs: 0 }
  const watchdog = new Watchdog({
    clock,
    ask(limitMs) {
      const isAnswered = answers[Math.min(seen.asked++, answers.length - 1)]
      if (isAnswered === true) return Promise.resolve()
      return new Promise((_resolve, reject) => {
        clock.after(limitMs, () => reject(new Error('took too long')))
      })
    },
    onHang: () => void (seen.hangs += 1),
  })
  return { clock, seen, watchdog }
}

test('a worker that responds is asked repeatedly and left alone', async () => {
  const { clock, seen } = setUp([true])
  await clock.advance(10 * workerPingPeriodMs)
  assert.deepEqual(seen, { asked: 10, hangs: 0 })
})

test('a worker that does not respond, not even to a second question, hangs', async () => {
  const { clock, seen } = setUp([true, false])
  await clock.advance(2 * workerPingPeriodMs + workerHangMs + workerHangSurelyMs - 1)
  assert.deepEqual(seen, { asked: 3, hangs: 0 })
  await clock.advance(1)
  await clock.advance(100 * workerPingPeriodMs)
  assert.deepEqual(seen, { asked: 3, hangs: 1 })
})

test('a worker that responds to the second question does not hang, because the primary stood still', async () => {
  const { clock, seen } = setUp([false, true])
  await clock.advance(workerPingPeriodMs + workerHangMs)
  assert.deepEqual(seen, { asked: 2, hangs: 0 })
  await clock.advance(workerPingPeriodMs)
  assert.deepEqual(seen, { asked: 3, hangs: 0 })
})

test('a stopped watchdog asks and reports nothing', async () => {
  for (const stopsAfterMs of [0, workerPingPeriodMs, workerPingPeriodMs + workerHangMs]) {
    const { clock, seen, watchdog } = setUp([false])
    await clock.advance(stopsAfterMs)
    watchdog.close()
    const { asked } = seen
    await clock.advance(10 * workerHangMs)
    assert.deepEqual(seen, { asked, hangs: 0 })
    assert.equal(clock.timers, 0)
  }
})
