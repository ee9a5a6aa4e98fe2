import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attemptLines } from '../../../src/cli/attempt-lines.ts'
import { plainView, View } from '../../../src/cli/output/view.ts'

test('attempts in a row that ended in the same way are one line with their number, if that is asked for', () => {
  const rest = { address: null, duration_ms: 1, next_retry: null }
  const attempts = [3, 2, 1].map((time) => ({
    ...rest,
    time,
    update_id: time,
    status: 500,
    error: '500',
    response_body: null,
    response_headers: null,
  }))
  const columns = ['update_id', 'error']
  const view = new View(plainView)
  assert.equal(attemptLines({ attempts, columns }, view).length, 4)
  const [, line = '', ...others] = attemptLines({ attempts, columns, isFolded: true }, view)
  assert.match(line, /^ *3 +3 +500$/)
  assert.deepEqual(others, [])
  const [last] = attempts
  assert(last !== undefined)
  const older = { ...last, status: 404, error: '404', time: 0, update_id: 0 }
  const cut = { attempts: [...attempts, older], columns, isFolded: true, linesMax: 1 }
  assert.deepEqual(attemptLines(cut, view).slice(1), [line], 'lines are counted, not attempts')
})
