import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  slowAskAgainMs,
  slowStartMsMax,
  whileSlow,
} from '../../../../src/nodes/commands/while-slow.ts'
import { NoServerError } from '../../../../src/nodes/postgres/pg-connection.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const silence = new Error('postgres://a/b: Query read timeout', {
  cause: new Error('Query read timeout'),
})

const skip = (): void => undefined

function setUp(failures: readonly Error[]) {
  const clock = new FakeClock()
  const warnings: unknown[] = []
  const warn = (fields: object): void => void warnings.push(fields)
  const log = { debug: skip, info: skip, warn, error: skip }
  const state = { steps: 0, result: '' }
  const step = async (): Promise<string> => {
    const failure = failures[Math.min(state.steps, failures.length - 1)]
    state.steps += 1
    if (failure !== undefined && (failures.length === 1 || state.steps <= failures.length))
      throw failure
    return 'done'
  }
  const end = whileSlow({ clock, log }, step).then(
    (result) => void (state.result = result),
    (error: unknown) => void (state.result = String(error)),
  )
  return { clock, warnings, state, end }
}

test('a start asks a database again that did not respond in time, and says so', async () => {
  const { clock, warnings, state, end } = setUp([silence, silence])
  await clock.advance(2 * slowAskAgainMs)
  await end
  assert.deepEqual([state.result, state.steps], ['done', 3])
  assert.deepEqual(warnings, [{ error: silence.message }, { error: silence.message }])
})

test('a start gives up a database that stays silent, and one that is away at once', async () => {
  const silent = setUp([silence])
  await silent.clock.advance(slowStartMsMax + slowAskAgainMs)
  await silent.end
  assert.equal(silent.state.result, String(silence))
  assert.equal(silent.state.steps, slowStartMsMax / slowAskAgainMs + 1)
})

test('what is no silence is no slow database: a start ends at once if all of its servers are away', async () => {
  const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const { state, warnings, end } = setUp([new NoServerError([], [away])])
  await end
  assert.deepEqual([state.steps, warnings], [1, []])
  const one = setUp([new NoServerError([], [away, new Error('Query read timeout')])])
  await one.clock.advance(0)
  assert.equal(one.warnings.length, 1)
  await one.clock.advance(slowStartMsMax + slowAskAgainMs)
  await one.end
})
