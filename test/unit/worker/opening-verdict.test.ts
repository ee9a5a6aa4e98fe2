import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  openingVerdicts,
  type ShardPast,
  type WorkerPast,
} from '../../../src/worker/opening-verdict.ts'
import type { ShardLife } from '../../../src/shard/recovery/shard-marks.ts'

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

test('all shards are opened at once after a clean end, a kill, or a first death over no shard', () => {
  assert.deepEqual(actions([{ phase: 'closed' }, idle, compacted], {}), [
    'open 0',
    'open 0',
    'open 0',
  ])
  assert.deepEqual(actions([idle], { crash: { signal: 'SIGABRT', inARow: 1 } }), ['open 0'])
})

test('only the shard that was compacted or opened when its worker died is checked first', () => {
  for (const signal of ['SIGABRT', 'SIGBUS', 'SIGSEGV']) {
    const crash = { signal, inARow: 1 }
    assert.deepEqual(actions([idle, compacted, { phase: 'opening' }], { crash }), [
      'open 0',
      'check 1',
      'check 1',
    ])
  }
})

test('a shard over which two processes in a row died is not opened', () => {
  const crash = { signal: 'SIGABRT', inARow: 2 }
  assert.deepEqual(actions([{ ...compacted, deaths: 1 }], { crash }), ['leave 2'])
  assert.deepEqual(actions([{ phase: 'opening', deaths: 1 }], { crash }), ['leave 2'])
})

test('a death long after the first one counts as the first', () => {
  const crash = { signal: 'SIGABRT', inARow: 1 }
  assert.deepEqual(actions([{ ...compacted, deaths: 1 }], { crash }), ['check 1'])
})

test('a second death in a row puts every shard in doubt, and a SIGBUS over no shard does so the first time', () => {
  const again = { signal: 'SIGSEGV', inARow: 2 }
  assert.deepEqual(actions([idle, idle], { crash: again }), ['check 0', 'check 0'])
  const bus = { signal: 'SIGBUS', inARow: 1 }
  assert.deepEqual(actions([idle, idle], { crash: bus }), ['check 0', 'check 0'])
})

test('a shard that was set aside stays so until it is tried again, and is then checked', () => {
  const crash = { signal: 'SIGABRT', inARow: 1 }
  const broken = { phase: 'closed', isBroken: true, deaths: 2 } as const
  assert.deepEqual(actions([broken, idle], {}), ['leave 2', 'open 0'])
  assert.deepEqual(actions([broken, idle], { crash }), ['leave 2', 'open 0'])
  assert.deepEqual(actions([broken, idle], { triesAgain: true }), ['check 0', 'open 0'])
})

test('a shard stays in doubt until it was open, and a new start starts again', () => {
  assert.deepEqual(actions([{ phase: 'waiting' }, { phase: 'opening' }], {}), [
    'check 0',
    'check 0',
  ])
  assert.deepEqual(actions([{ phase: 'opening', deaths: 1 }], { triesAgain: true }), ['open 0'])
})
