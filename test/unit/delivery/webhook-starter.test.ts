import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebhookStarter } from '../../../src/delivery/webhook-starter.ts'
import { PostboteError } from '../../../src/kit/errors.ts'
import type { Shard } from '../../../src/shard/shard.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { ShardLife } from '../../support/store/shard-life.ts'

function startedBy(starts: (nth: number) => void): {
  readonly clock: FakeClock
  readonly starter: WebhookStarter
  readonly shard: Shard
  readonly atMs: number[]
  readonly logged: object[]
} {
  const clock = new FakeClock()
  const { shard } = new ShardLife(new MemoryStore(), clock)
  const atMs: number[] = []
  const logged: object[] = []
  const starter = new WebhookStarter(
    {
      async startWebhooks() {
        atMs.push(clock.monotonicMs())
        starts(atMs.length)
      },
    },
    {
      clock,
      log: { debug: skip, info: skip, warn: skip, error: (details) => void logged.push(details) },
    },
  )
  return { clock, starter, shard, atMs, logged }
}

function skip(): void {
  // Only errors are checked here.
}

function unreadable(): never {
  const cause = new Error('Corruption: not an sstable (bad magic number)')
  throw new PostboteError('STORE_UNAVAILABLE', { cause })
}

test('webhooks of a shard that cannot be read are tried again at growing intervals until they are started', async () => {
  const { clock, starter, shard, atMs, logged } = startedBy((nth) => {
    if (nth < 4) unreadable()
  })
  const beganMs = clock.monotonicMs()
  starter.start(shard)
  for (let second = 0; second < 60; second++) await clock.advance(1_000)
  assert.deepEqual(
    atMs.map((at) => at - beganMs),
    [0, 1_000, 3_000, 7_000],
  )
  assert.equal(logged.length, 3)
  assert.match(JSON.stringify(logged), /bad magic number/)
})

test('nothing is tried again after the end, and the webhooks of a shard that was read again start immediately', async () => {
  const { clock, starter, shard, atMs } = startedBy(unreadable)
  starter.start(shard)
  await clock.advance(1_500)
  assert.equal(atMs.length, 2)
  starter.start(shard)
  await clock.advance(10)
  assert.equal(atMs.length, 3)
  starter.close()
  await clock.advance(600_000)
  assert.equal(atMs.length, 3)
})
