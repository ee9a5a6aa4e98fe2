import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RareWarning } from '../../../src/cluster/rare-warning.ts'
import { rareWarningPeriodMs } from '../../../src/cluster/limits.ts'
import { FakeClock } from '../../support/fake-clock.ts'

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
