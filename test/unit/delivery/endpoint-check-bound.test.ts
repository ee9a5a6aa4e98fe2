import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EndpointChecks, endpointChecksMax } from '../../../src/delivery/endpoint-check.ts'

const refused = { code: 'TOO_MANY_REQUESTS', retryAfterS: 5 }

test('one check of a queue runs at a time, and few in a worker, and each makes room when it has ended', async () => {
  const checks = new EndpointChecks()
  const ends: (() => void)[] = []
  const begin = (queue: number): Promise<string> =>
    checks.run(queue, () => new Promise((resolve) => ends.push(() => resolve('done'))))
  const first = begin(1)
  await assert.rejects(begin(1), refused)
  const others = Array.from({ length: endpointChecksMax - 1 }, (_, nth) => begin(nth + 2))
  await assert.rejects(begin(100), refused)
  ends[0]?.()
  assert.equal(await first, 'done')
  const again = begin(1)
  for (const end of ends) end()
  await Promise.all([again, ...others])
  await assert.rejects(
    checks.run(1, () => Promise.reject(new Error('x'))),
    { message: 'x' },
  )
  assert.equal(await checks.run(1, () => Promise.resolve('free')), 'free')
})
