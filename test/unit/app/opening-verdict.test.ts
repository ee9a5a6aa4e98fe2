import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  openingVerdicts,
  type ShardPast,
  type WorkerPast,
} from '../../../src/app/opening-verdict.ts'
import type { ShardLife } from '../../../src/shard/shard-marks.ts'

interface Past extends Partial<ShardLife> {
  readonly isBroken?: boolean
  readonly wasCompacting?: boolean
}

function pastOf({ isBroken = false, wasCompacting = false, ...life }: Past): ShardPast {
  return {
    life: { phase: 'open', isUnchecked: false, deaths: 0, ...life },
    isBroken,
    wasCompacting,
  }
}

function actions(pasts: readonly Past[], worker: Partial<WorkerPast>): string[] {
  const verdicts = openingVerdicts(pasts.map(pastOf), {
    crash: undefined,
    triesAgain: false,
    ...worker,
  })
  return verdicts.map(({ action, deaths }) => `${action} ${deaths}`)
}

const compacted = { wasCompacting: true }
const idle = {}

test('after an end in order, a kill or a first death over nobody’s shard all shards are opened at once', () => {
  assert.deepEqual(actions([{ phase: 'closed' }, idle, compacted], {}), [
    'open 0',
    'open 0',
    'open 0',
  ])
  assert.deepEqual(actions([idle], { crash: { signal: 'SIGABRT', inARow: 1 } }), ['open 0'])
})

test('the shard that was compacted or opened when its worker died is checked first, and only that one', () => {
  for (const signal of ['SIGABRT', 'SIGBUS', 'SIGSEGV']) {
    const crash = { signal, inARow: 1 }
    assert.deepEqual(actions([idle, compacted, { phase: 'opening' }], { crash }), [
      'open 0',
      'check 1',
      'check 1',
    ])
  }
})

test('a shard over which two processes in a row have died is left aside', () => {
  const crash = { signal: 'SIGABRT', inARow: 2 }
  assert.deepEqual(actions([{ ...compacted, deaths: 1 }], { crash }), ['leave 2'])
  assert.deepEqual(actions([{ phase: 'opening', deaths: 1 }], { crash }), ['leave 2'])
})

test('a death long after the first one is the first again', () => {
  const crash = { signal: 'SIGABRT', inARow: 1 }
  assert.deepEqual(actions([{ ...compacted, deaths: 1 }], { crash }), ['check 1'])
})

test('a second death in a row puts every shard in doubt, and SIGBUS over no shard the first one', () => {
  const again = { signal: 'SIGSEGV', inARow: 2 }
  assert.deepEqual(actions([idle, idle], { crash: again }), ['check 0', 'check 0'])
  const bus = { signal: 'SIGBUS', inARow: 1 }
  assert.deepEqual(actions([idle, idle], { crash: bus }), ['check 0', 'check 0'])
})

test('what was set aside stays so until it is tried again, and is checked then', () => {
  const crash = { signal: 'SIGABRT', inARow: 1 }
  const broken = { phase: 'closed', isBroken: true, deaths: 2 } as const
  assert.deepEqual(actions([broken, idle], {}), ['leave 2', 'open 0'])
  assert.deepEqual(actions([broken, idle], { crash }), ['leave 2', 'open 0'])
  assert.deepEqual(actions([broken, idle], { triesAgain: true }), ['check 0', 'open 0'])
})

test('a shard in doubt stays in doubt until it was open, and a new start begins anew', () => {
  assert.deepEqual(actions([{ phase: 'waiting' }, { phase: 'opening' }], {}), [
    'check 0',
    'check 0',
  ])
  assert.deepEqual(actions([{ phase: 'opening', deaths: 1 }], { triesAgain: true }), ['open 0'])
})
