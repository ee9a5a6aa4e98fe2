/** Simulated clusters that place their shards, each drawn from its seed. `TEST_RUNS=100` draws a hundred times as many. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeEvictedMs } from '../../../../src/nodes/membership/limits.ts'
import { orphanTurnMs } from '../../../../src/nodes/membership/placement.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { Luck } from '../../../support/simulation/luck.ts'
import { PlacementWorld } from '../../../support/simulation/placement-world.ts'
import type {
  Outage,
  PlacementWorldOptions,
} from '../../../support/simulation/placement-world-options.ts'

const outageKinds: readonly Outage[] = ['away', 'refusing', 'cut']

function drawn(seed: number, chaosMs: number, calmMs = 0): PlacementWorldOptions {
  const luck = new Luck(seed)
  const fromMs = luck.int(0, chaosMs)
  return {
    seed,
    nodes: luck.int(1, 4),
    shards: 6,
    chaosMs,
    endMs: chaosMs + calmMs,
    drift: luck.pick([0, 0.15]),
    delayMsMax: luck.pick([20, 300, 3_000]),
    timeoutMs: luck.pick([1_000, 3_000]),
    lost: luck.pick([0, 0.02, 0.2]),
    late: luck.pick([0, 0, 0.05]),
    doubled: luck.pick([0, 0.2]),
    paused: luck.pick([0, 0.01, 0.05]),
    pauseMsMax: luck.pick([400, 2_000, 4_000]),
    outages: luck.chance(0.4)
      ? [
          {
            fromMs,
            toMs: Math.min(fromMs + luck.skewed(5_000), chaosMs),
            kind: luck.pick(outageKinds),
          },
        ]
      : [],
    troubleMs: luck.pick([1_000, 4_000]),
    inept: luck.pick([0, 0, 0.3]),
    troubles: luck.pick([
      [],
      ['kill'],
      ['kill', 'start'],
      ['drain', 'undrain'],
      ['start', 'drain'],
      ['kill', 'start', 'drain', 'undrain'],
    ]),
  }
}

function check(world: PlacementWorld, options: PlacementWorldOptions): void {
  assert.deepEqual(world.violations, [], JSON.stringify(options))
}

test('whatever happens, no two nodes serve a shard, and each hands over few at a time', (t) => {
  const sums = { claims: 0, handOvers: 0, evictions: 0, left: 0 }
  for (let seed = 0; seed < drawnRuns(2_000); seed++) {
    // Nodes hand over what belongs to others after 10 s.
    const options = drawn(seed, seed % 4 === 0 ? 13_000 : 4_000)
    const world = new PlacementWorld(options).run()
    check(world, options)
    for (const key of ['claims', 'handOvers', 'evictions', 'left'] as const)
      sums[key] += world.counts[key]
  }
  t.diagnostic(JSON.stringify(sums))
  for (const [what, count] of Object.entries(sums))
    assert(count > drawnRuns(250), `${count} ${what}`)
})

test('when it is quiet, orphans are claimed, shards get where they belong and stay there, and leaving nodes are gone', () => {
  for (let seed = 0; seed < drawnRuns(80); seed++) {
    const chaosMs = 8_000
    const options = drawn(seed, chaosMs, 60_000)
    const { timeoutMs, pauseMsMax, inept } = options
    const world = new PlacementWorld(options)
    const text = JSON.stringify(options)
    // What is under way ends, nodes that ended are started again, and those that stand still are evicted.
    let atMs = chaosMs + Math.max(timeoutMs, pauseMsMax, 2_000) + 2 * nodeEvictedMs
    world.run(atMs)
    if (inept > 0) world.run((atMs += world.nodes.length * orphanTurnMs))
    if (world.isAble) assert.deepEqual(world.orphans, [], text)
    world.run((atMs += inept > 0 ? 40_000 : 30_000))
    assert.deepEqual(world.misplaced, [], text)
    const states = world.nodes.map(({ state }) => state)
    if (states.includes('serving')) assert(!states.includes('leaving'), text)
    const { movedMs } = world
    world.run(atMs + 10_000)
    assert.equal(world.movedMs, movedMs, text)
    check(world, options)
  }
})
