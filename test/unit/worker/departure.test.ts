import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import {
  type DepartureOptions,
  leave,
  leaveRequestsMs,
  settle,
} from '../../../src/worker/departure.ts'
import { settleRequestsMs } from '../../../src/process/limits.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

/** A response that is not finished. */
function answerTo(url: string): ServerResponse & { destroyed: boolean } {
  const method = url.endsWith('/updates') ? 'POST' : 'GET'
  const answer: object = { req: { method, url }, destroyed: false }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these fields are used
  return answer as ServerResponse & { destroyed: boolean }
}

/** The requests that last as long as their clients like. */
const long: ReadonlySet<string> = new Set(['/bot1:x/getUpdates', '/v1/updates'])

function setUp(...urls: string[]) {
  const clock = new FakeClock()
  const calls: string[] = []
  const open = new Set(urls.map((url) => answerTo(url)))
  const departure: DepartureOptions = {
    clock,
    toSettling: () => void calls.push('settling'),
    toElsewhere: () => void calls.push('elsewhere'),
    isBrief: ({ req }) => req.url !== undefined && !long.has(req.url),
    isUnderWay: (response) => [...open].some((answer) => answer === response),
    bots: {
      async pauseDeliveries() {
        calls.push('rest')
      },
      async drain() {
        calls.push('drain')
      },
    },
    streams: () => [{ stop: () => void calls.push('stop') }],
    async closeShards() {
      calls.push('close')
    },
  }
  const ended = { settle: false, leave: false }
  return {
    clock,
    calls,
    open,
    ended,
    settle: () => void settle(departure, () => [...open]).then(() => (ended.settle = true)),
    leave: () => void leave(departure, () => [...open]).then(() => (ended.leave = true)),
  }
}

test('settling waits for requests in progress, but not for those that last, or later requests', async () => {
  const set = setUp('/v1/bots/1/updates', '/bot1:x/getUpdates', '/v1/updates')
  set.settle()
  await set.clock.advance(1_000)
  assert.deepEqual(set.calls, ['settling'])
  const [first] = set.open
  if (first !== undefined) set.open.delete(first)
  await set.clock.advance(100)
  assert.deepEqual(set.calls, ['settling', 'rest'])
  assert(set.ended.settle)
})

test('a request that does not end delays settling by a minute at most', async () => {
  const set = setUp('/v1/bots/1/updates')
  set.settle()
  await set.clock.advance(settleRequestsMs + 100)
  assert.deepEqual(set.calls, ['settling', 'rest'])
})

test('the shards are closed when no request is in progress, and soon in any case', async () => {
  const set = setUp('/bot1:x/getUpdates')
  set.leave()
  await set.clock.advance(100)
  assert.deepEqual(set.calls, ['elsewhere', 'stop', 'drain'])
  await set.clock.advance(leaveRequestsMs)
  assert.equal(set.calls.at(-1), 'close')
  assert(set.ended.leave)

  const quick = setUp('/bot1:x/getMe')
  quick.leave()
  await quick.clock.advance(10)
  for (const answer of quick.open) answer.destroyed = true
  await quick.clock.advance(50)
  assert.equal(quick.calls.at(-1), 'close')
})
