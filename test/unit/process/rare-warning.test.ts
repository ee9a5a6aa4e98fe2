import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RareWarning, rareWarningPeriodMs } from '../../../src/process/rare-warning.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

test('a warning is logged immediately, and then once per period with the number of times, including the last ones', async () => {
  const clock = new FakeClock()
  const said: object[] = []
  const log = {
    debug: () => undefined,
    info: () => undefined,
    error: () => undefined,
    warn: (details: object, message: string) => void said.push({ ...details, message }),
  }
  const warning = new RareWarning({ clock, log }, 'too many')
  warning.note({ open: 1 })
  assert.deepEqual(said, [{ open: 1, times: 1, message: 'too many' }])
  warning.note({ open: 2 })
  warning.note({ open: 3 })
  await clock.advance(rareWarningPeriodMs - 1)
  assert.equal(said.length, 1)
  await clock.advance(1)
  assert.deepEqual(said[1], { open: 3, times: 2, message: 'too many' })
  await clock.advance(rareWarningPeriodMs)
  assert.equal(said.length, 2)
  warning.note({ open: 4 })
  assert.deepEqual(said[2], { open: 4, times: 1, message: 'too many' })
})

test('the occurrences of one cause are one line if they are gathered', async () => {
  const clock = new FakeClock()
  const said: object[] = []
  const log = { ...console, warn: (details: object) => void said.push(details) }
  const warning = new RareWarning({ clock, log }, 'lost', 5_000)
  for (let shard = 0; shard < 20; shard++) {
    warning.note({ shard })
    await clock.advance(200)
  }
  assert.deepEqual(said, [])
  await clock.advance(1_000)
  assert.deepEqual(said, [{ shard: 19, times: 20 }])
  await clock.advance(rareWarningPeriodMs)
  assert.equal(said.length, 1)
  warning.note({ shard: 3 })
  await clock.advance(5_000)
  assert.deepEqual(said[1], { shard: 3, times: 1 })
})
