import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VisiblePoller } from '../../../../src/page/elements/visible-poller.ts'
import { browserClockOf } from '../../../support/programs/browser-clock-of.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'

function setUp(hidden = false) {
  const fake = new FakeClock()
  const listeners = new Set<() => void>()
  const visibility = {
    hidden,
    addEventListener: (_name: string, listener: () => void) => void listeners.add(listener),
    removeEventListener: (_name: string, listener: () => void) => void listeners.delete(listener),
  }
  let works = 0
  let next: 'soon' | 'later' = 'later'
  const poller = new VisiblePoller({
    visibility,
    pauseMs: 5_000,
    clock: browserClockOf(fake),
    work: () => {
      works += 1
      return Promise.resolve(next)
    },
  })
  return {
    fake,
    poller,
    listeners,
    works: () => works,
    fail: (isFailing: boolean) => {
      next = isFailing ? 'soon' : 'later'
    },
    show: (isShown: boolean) => {
      visibility.hidden = !isShown
      for (const listener of listeners) listener()
    },
  }
}

test('the server is asked at once and then after each pause, while the page is visible', async () => {
  const { fake, works, show } = setUp()
  assert.equal(works(), 1)
  await fake.advance(15_000)
  assert.equal(works(), 4)
  show(false)
  await fake.advance(60_000)
  assert.equal(works(), 4)
  show(true)
  assert.equal(works(), 5)
  await fake.advance(5_000)
  assert.equal(works(), 6)
})

test('a page that begins in the background asks nothing', async () => {
  const { fake, works } = setUp(true)
  await fake.advance(10_000)
  assert.equal(works(), 0)
})

test('a view that was left asks nothing and leaves no timer', async () => {
  const { fake, poller, works, listeners } = setUp()
  await settle()
  poller.close()
  poller.hurry()
  await fake.advance(10_000)
  assert.equal(works(), 1)
  assert.equal(fake.timers, 0)
  assert.equal(listeners.size, 0)
})

test('what is hurried while it works is done once more at once', async () => {
  const { fake, poller, works } = setUp()
  poller.hurry()
  await settle()
  await fake.advance(0)
  assert.equal(works(), 2)
  await fake.advance(500)
  assert.equal(works(), 2)
})

test('what the server has failed to answer is asked again soon', async () => {
  const { fake, works, fail } = setUp()
  fail(true)
  await fake.advance(5_000)
  assert.equal(works(), 2)
  await fake.advance(1_000)
  assert.equal(works(), 3)
  fail(false)
  await fake.advance(1_000)
  assert.equal(works(), 4)
  await fake.advance(4_999)
  assert.equal(works(), 4)
})
