import assert from 'node:assert/strict'
import { test } from 'node:test'
import { delayedRefusalsPerBotMax, RefusalPacer } from '../../../src/admission/refusal-pacer.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'

function setUp() {
  const clock = new FakeClock()
  const pacer = new RefusalPacer(clock)
  const log: string[] = []
  const startMs = clock.monotonicMs()
  const refuse = (name: string, alwaysDelayed = false): void => {
    void pacer
      .pace({ alwaysDelayed })
      .then(() => log.push(`${name} at ${clock.monotonicMs() - startMs}`))
  }
  return { clock, pacer, log, refuse }
}

test('the first refusal is sent immediately, and any other within three seconds is delayed by three', async () => {
  const { clock, log, refuse } = setUp()
  refuse('first')
  await clock.advance(2_999)
  refuse('second')
  await clock.advance(1)
  refuse('third')
  await clock.advance(1)
  refuse('fourth')
  await clock.advance(10_000)
  assert.deepEqual(log, ['first at 0', 'third at 3000', 'second at 5999', 'fourth at 6001'])
  assert.equal(clock.timers, 0)
})

test('a refusal that is always delayed does not count as one that was sent immediately', async () => {
  const { clock, log, refuse } = setUp()
  refuse('older offset', true)
  await clock.advance(1)
  refuse('first')
  await clock.advance(5_000)
  assert.deepEqual(log, ['first at 1', 'older offset at 3000'])
})

test('a bounded number of refusals is delayed, and past that the oldest is sent', async () => {
  const { clock, pacer, log, refuse } = setUp()
  for (let count = 0; count <= delayedRefusalsPerBotMax; count++) refuse(`${count}`)
  await clock.advance(5)
  refuse('more')
  refuse('and more')
  await settle()
  assert.deepEqual(log, ['0 at 0', '1 at 5', '2 at 5'])
  assert.equal(pacer.delayedCount, delayedRefusalsPerBotMax)
  await clock.advance(3_000)
  assert.equal(pacer.delayedCount, 0)
  assert.equal(log.length, delayedRefusalsPerBotMax + 3)
})

test('40 connections that repeat a refused call at once get 13 refusals a second', async () => {
  const { clock, pacer } = setUp()
  let refusals = 0
  const repeat = async (): Promise<void> => {
    while (refusals < 10_000) {
      await pacer.pace({ alwaysDelayed: false })
      refusals += 1
    }
  }
  for (let nth = 0; nth < 40; nth++) void repeat()
  await clock.advance(30_000)
  assert(refusals <= 420, `${refusals} in 30 s`)
})

test('a shutdown sends all delayed refusals', async () => {
  const { clock, pacer, log, refuse } = setUp()
  for (let count = 0; count < 4; count++) refuse(`${count}`, true)
  pacer.releaseAll()
  await settle()
  assert.equal(log.length, 4)
  assert.equal(clock.timers, 0)
})
