import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replayProgress } from '../../../../src/page/bot/replay-progress.ts'

const running = {
  state: 'running',
  total: 1_000,
  replayed: 240,
  skipped: { filtered: 10, too_large: 0, gone: 0 },
  reason: null,
  rate: 100,
} as const

test('a replay that runs says how far it is, and how fast', () => {
  assert.deepEqual(replayProgress(running), {
    share: 0.25,
    text: '240 of 1,000 delivered again · 10 of types that the bot does not want · 100 per second at most',
  })
  const { share, text } = replayProgress({ ...running, total: null })
  assert.deepEqual([share, text.slice(0, 19)], [undefined, '240 delivered again'])
})

test('one that is paused says why, and one that is done is whole', () => {
  const paused = { ...running, state: 'paused', reason: 'the queue is half full' } as const
  assert.match(replayProgress(paused).text, /· the queue is half full$/)
  const skipped = { filtered: 0, too_large: 1, gone: 760 }
  assert.deepEqual(replayProgress({ ...running, state: 'done', skipped }), {
    share: 1,
    text: '240 of 1,000 delivered again · 1 too large · 760 no longer kept',
  })
  assert.equal(replayProgress({ ...running, state: 'cancelled', total: 0, replayed: 0 }).share, 1)
})
