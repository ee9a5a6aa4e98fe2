import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BotPacing, PerBotPacing } from '../../../src/http/bot-pacing.ts'
import { FakeClock, settle } from '../../support/fake-clock.ts'

test('the first refusal goes out at once, any other until three seconds later is delayed by three', () => {
  const pacing = new PerBotPacing<string>()
  assert.equal(pacing.refuse('first', 0), 'first')
  assert.equal(pacing.refuse('second', 2_999), undefined)
  assert.deepEqual(pacing.takeDue(5_998), [])
  assert.deepEqual(pacing.takeDue(5_999), ['second'])
  assert.equal(pacing.refuse('third', 3_000), 'third')
  assert.equal(pacing.refuse('fourth', 5_999), undefined)
})

test('a refusal that is always delayed does not count as one that went out at once', () => {
  const pacing = new PerBotPacing<string>()
  assert.equal(pacing.refuse('older offset', 0, 'delayed'), undefined)
  assert.equal(pacing.refuse('first', 1), 'first')
  assert.deepEqual(pacing.takeDue(3_000), ['older offset'])
})

test('at most eight are delayed; past that the oldest goes out', () => {
  const pacing = new PerBotPacing<number>()
  for (let count = 0; count < 9; count++) pacing.refuse(count, count)
  assert.equal(pacing.refuse(9, 9), 1)
  assert.equal(pacing.refuse(10, 10), 2)
  assert.deepEqual(pacing.takeDue(Infinity), [3, 4, 5, 6, 7, 8, 9, 10])
})

function setUp() {
  const clock = new FakeClock()
  const pacing = new BotPacing(clock)
  const log: string[] = []
  const startMs = clock.monotonicMs()
  async function refuse(
    name: string,
    options: Parameters<BotPacing['hold']>[1] = {},
  ): Promise<void> {
    await pacing.hold(name.charAt(0), options)
    log.push(`${name} at ${clock.monotonicMs() - startMs}`)
  }
  return { clock, pacing, log, refuse }
}

test('bots are paced apart, each refusal at its own time', async () => {
  const { clock, pacing, log, refuse } = setUp()
  void refuse('a1')
  void refuse('b1', { kind: 'delayed' })
  await clock.advance(500)
  void refuse('a2')
  await clock.advance(500)
  void refuse('a3')
  await clock.advance(5_000)
  assert.deepEqual(log, ['a1 at 0', 'b1 at 3000', 'a2 at 3500', 'a3 at 4000'])
  assert.equal(pacing.bots, 0)
  assert.equal(clock.timers, 0)
})

test('a bot is remembered for three seconds after its last at-once refusal, and no longer', async () => {
  const { clock, pacing, log, refuse } = setUp()
  void refuse('a1')
  await clock.advance(2_999)
  void refuse('a2')
  await clock.advance(1)
  void refuse('a3')
  await clock.advance(2_998)
  assert.deepEqual(log, ['a1 at 0', 'a3 at 3000'])
  assert.equal(pacing.bots, 1)
  await clock.advance(10)
  assert.deepEqual(log, ['a1 at 0', 'a3 at 3000', 'a2 at 5999'])
  assert.equal(pacing.bots, 0)
})

test('a client that goes away leaves its place to others', async () => {
  const { clock, log, refuse } = setUp()
  const gone = new AbortController()
  void refuse('a0')
  for (let count = 1; count < 8; count++) void refuse(`a${count}`)
  void refuse('a8', { signal: gone.signal })
  gone.abort()
  void refuse('a9')
  await settle()
  assert.deepEqual(log, ['a0 at 0', 'a8 at 0'])
  await clock.advance(3_000)
  assert.equal(log.length, 10)
  await refuse('a10', { signal: gone.signal })
})

test('a drained worker lets everything go', async () => {
  const { clock, pacing, log, refuse } = setUp()
  void refuse('a1')
  void refuse('a2')
  void refuse('b1', { kind: 'delayed' })
  pacing.releaseAll()
  await settle()
  assert.equal(log.length, 3)
  assert.deepEqual([clock.timers, pacing.bots], [0, 0])
})
