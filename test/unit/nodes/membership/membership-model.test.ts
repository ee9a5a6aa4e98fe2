/** Simulated clusters, each drawn from its seed. `TEST_RUNS=100` draws a hundred times as many. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  nodeEvictedMs,
  nodeHeartbeatMs,
  nodeObservationGapMs,
} from '../../../../src/nodes/membership/limits.ts'
import { nodeLeaseMs } from '../../../../src/process/limits.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { Luck } from '../../../support/simulation/luck.ts'
import {
  MembershipWorld,
  type MembershipWorldOptions,
} from '../../../support/simulation/membership-world.ts'

/** Runs worlds that `draw` describes, and returns them. */
function worldsOf(
  count: number,
  draw: (luck: Luck) => Omit<MembershipWorldOptions, 'seed'>,
): MembershipWorld[] {
  return Array.from({ length: drawnRuns(count) }, (_, seed) => {
    const options = { seed, ...draw(new Luck(seed)) }
    const world = new MembershipWorld(options).run()
    assert.deepEqual(world.violations, [], JSON.stringify(options))
    return world
  })
}

function total(worlds: readonly MembershipWorld[]): number {
  return worlds.reduce((sum, { evictions }) => sum + evictions.length, 0)
}

test('no node is evicted while its lease stands, and none becomes a member again, whatever happens', () => {
  const worlds = worldsOf(4_000, (luck) => {
    const fromMs = luck.int(1_000, 8_000)
    return {
      nodes: luck.int(2, 4),
      endMs: 12_000,
      // The times are safe as long as the rates of two clocks differ by less than a third.
      drift: 0.15,
      delayMsMax: luck.pick([20, 300, 3_000]),
      timeoutMs: luck.pick([1_000, 5_000]),
      lost: luck.pick([0, 0.05, 0.3]),
      doubled: luck.pick([0, 0.2]),
      paused: luck.pick([0, 0.02, 0.1]),
      pauseMsMax: luck.pick([400, 2_000, 4_000]),
      outages: luck.chance(0.3) ? [{ fromMs, toMs: fromMs + luck.skewed(5_000) }] : [],
    }
  })
  assert(total(worlds) > worlds.length / 4, `${total(worlds)} evictions`)
})

const calm = { drift: 0.01, delayMsMax: 20, endMs: 12_000 }

test('in calm weather nobody is evicted, and every node beats all the time', () => {
  const worlds = worldsOf(100, (luck) => ({
    ...calm,
    nodes: luck.int(1, 4),
    timeoutMs: nodeLeaseMs,
  }))
  assert.equal(total(worlds), 0)
  const fewest = Math.floor(calm.endMs / (nodeHeartbeatMs / 0.99 + 45))
  for (const { acknowledged } of worlds) assert(acknowledged >= fewest - 1, `${acknowledged}`)
})

test('a node that stops is evicted in time, once', () => {
  for (const world of worldsOf(300, (luck) => ({
    ...calm,
    nodes: luck.int(2, 4),
    timeoutMs: nodeLeaseMs,
    stopMs: 4_000,
  }))) {
    const [eviction, ...others] = world.evictions
    assert.deepEqual(others, [])
    assert.equal(eviction?.boot, 'node0/0')
    // Its last heartbeat arrives, another node reads it, and reads it again when its time is over.
    const slowestMs = (nodeEvictedMs + 2 * nodeHeartbeatMs) / 0.99 + 6 * 21
    assert(eviction.atMs <= 4_000 + slowestMs, `evicted at ${eviction.atMs}`)
  }
})

test('after an outage of the table nobody is evicted who answers within the lease of its end', () => {
  const worlds = worldsOf(600, (luck) => {
    const fromMs = luck.int(2_000, 3_000)
    return {
      ...calm,
      nodes: luck.int(2, 4),
      // A heartbeat that was lost right before the end is given up, and the next one arrives: at the latest a bit after the
      // lease, which is still in time.
      timeoutMs: luck.int(100, nodeLeaseMs),
      outages: [{ fromMs, toMs: fromMs + luck.int(nodeObservationGapMs + 50, 8_000) }],
    }
  })
  assert.equal(total(worlds), 0)
})

test('after an outage too short to begin all observations anew, nobody is evicted who answers soon', () => {
  const soonMs = nodeEvictedMs - nodeObservationGapMs - nodeHeartbeatMs - 60
  const worlds = worldsOf(600, (luck) => {
    const fromMs = luck.int(2_000, 3_000)
    return {
      ...calm,
      nodes: luck.int(2, 4),
      timeoutMs: luck.int(50, soonMs - nodeHeartbeatMs),
      outages: [{ fromMs, toMs: fromMs + luck.int(1, nodeObservationGapMs + 50) }],
    }
  })
  assert.equal(total(worlds), 0)
})
