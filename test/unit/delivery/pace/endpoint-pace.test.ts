import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EndpointPace } from '../../../../src/delivery/pace/endpoint-pace.ts'

const open = Number.POSITIVE_INFINITY

interface Result {
  readonly what: 'taken' | 'rejected' | 'sick'
  /** How often the update had failed before. */
  readonly failures?: number
  readonly startedMs?: number
}

class Step {
  readonly pace = new EndpointPace()
  nowMs = 0

  /** Lets half a second pass that begins with these results and ends with the last of them, and returns the pace. */
  of(...results: readonly Result[]): number {
    this.pace.held(this.nowMs + 1)
    for (const [index, { what, failures = 0, startedMs }] of results.entries()) {
      const isLast = index === results.length - 1
      const atMs = this.nowMs + (isLast ? 501 : 1)
      const ended = { on: { startedMs: startedMs ?? atMs }, lane: { failures } }
      if (what === 'taken') this.pace.succeeded(ended, atMs)
      else this.pace.failed(ended, what === 'sick', atMs)
    }
    this.nowMs += 502
    return this.pace.perSecond
  }
}

const taken: Result = { what: 'taken' }
const retaken: Result = { what: 'taken', failures: 2 }
const sick: Result = { what: 'sick' }
const rejected: Result = { what: 'rejected' }

function limited(): Step {
  const step = new Step()
  assert.equal(step.of(rejected, rejected, rejected), 20)
  return step
}

test('a webhook whose updates are taken is never slowed down, nor one of which some keys fail', () => {
  const step = new Step()
  for (let nth = 0; nth < 20; nth++) {
    assert.equal(step.of(taken, taken, taken), open)
    assert.equal(step.of(rejected, rejected, rejected, rejected, taken), open)
    assert.equal(step.of(sick, sick, taken, taken), open)
  }
})

test('a single key that fails slows nothing down, whatever its error and however often', () => {
  for (const what of ['rejected', 'sick'] as const) {
    const step = new Step()
    step.of({ what })
    for (let failures = 1; failures < 20; failures++) {
      assert.equal(step.of({ what, failures }, { what, failures }, { what, failures }), open)
    }
  }
})

test('three failures of updates that had not failed before, and nothing taken for half a second, limit the pace to 20', () => {
  const step = new Step()
  assert.equal(step.of(rejected, rejected), open)
  assert.equal(step.of(rejected, rejected), 20)
})

test('20 failures per second limit the pace, although all of these updates had failed before', () => {
  const known = Array.from({ length: 9 }, () => ({ what: 'rejected', failures: 9 }) as const)
  const step = new Step()
  assert.equal(step.of(...known), open)
  assert.equal(step.of(...known, ...known), 20)
})

test('failures that are all there in an instant limit nothing, because a success may follow', () => {
  const pace = new EndpointPace()
  for (let nth = 0; nth < 40; nth++) {
    pace.failed({ on: { startedMs: 0 }, lane: { failures: 0 } }, true, 100)
  }
  assert.equal(pace.perSecond, open)
})

test('if most attempts say that the endpoint is sick, the pace is limited although others are taken', () => {
  assert.equal(new Step().of(sick, sick, taken, rejected, sick, sick), 20)
})

test('the pace falls to 20 while something is taken, to 10 if all is rejected, and to 1 if the endpoint is sick', () => {
  const step = limited()
  assert.equal(step.of(sick, sick, sick, taken), 20)
  assert.deepEqual(
    [1, 2].map(() => step.of(rejected, rejected, sick)),
    [10, 10],
  )
  const falls = [1, 2, 3, 4, 5].map(() => step.of(sick, sick, sick))
  assert.deepEqual(falls, [5, 2.5, 1.25, 1, 1])
  assert.equal(step.of(rejected, sick, sick), 10)
  assert.equal(step.of(taken, taken), 20)
})

test('while updates are taken the pace doubles in each step, however many keys fail', () => {
  const step = limited()
  const rises = [1, 2, 3, 4].map(() => step.of(rejected, taken, rejected, rejected))
  assert.deepEqual(rises, [40, 80, 160, 320])
  for (let nth = 0; nth < 5; nth++) step.of(taken, taken)
  assert.equal(step.pace.perSecond, open)
})

test('above half of the pace at which the endpoint fell over the pace doubles in 40 s', () => {
  const step = limited()
  for (let nth = 0; nth < 3; nth++) step.of(retaken, taken)
  assert.equal(step.pace.perSecond, 160)
  assert.equal(step.of(sick, sick, sick), 40, 'the doubling went on for a step too long')
  for (let nth = 0; nth < 80; nth++) step.of(retaken, taken)
  assert.equal(Math.round(step.pace.perSecond), 80)
  assert.equal(Math.round(step.of(sick, sick, sick)), 40)
})

test('a fall after which only known updates fail says nothing about what the endpoint can take', () => {
  const step = limited()
  for (let nth = 0; nth < 3; nth++) step.of(taken, { what: 'rejected', failures: 3 })
  for (let nth = 0; nth < 4; nth++) step.of(rejected, rejected, rejected)
  assert.equal(step.pace.perSecond, 10)
  const rises = [1, 2, 3].map(() => step.of(taken, taken))
  assert.deepEqual(rises, [20, 40, 80])
})

test('attempts that began before the last change do not count', () => {
  const step = limited()
  const changedMs = step.nowMs - 1
  assert.equal(step.of(taken, taken), 40)
  const early = { what: 'sick', startedMs: changedMs } as const
  assert.equal(step.of(early, early, early, early), 40)
})

test('a pace that holds nothing back for 10 s opens', () => {
  const { pace } = limited()
  for (let nowMs = 2_000; nowMs <= 13_000; nowMs += 500) {
    pace.succeeded({ on: { startedMs: nowMs }, lane: { failures: 0 } }, nowMs)
  }
  assert.equal(pace.perSecond, open)
})
