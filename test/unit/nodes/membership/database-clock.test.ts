import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  clockSlewRate,
  DatabaseClock,
  lagOf,
} from '../../../../src/nodes/membership/database-clock.ts'
import { nodeHeartbeatMs } from '../../../../src/nodes/membership/limits.ts'
import { clockDifferenceMsMax } from '../../../../src/kit/limits.ts'

const startMs = 1_800_000_000_000
const minuteMs = 60_000

/** A database and a node, whose machine has run for some time. */
class Clocks {
  readonly logged: string[] = []
  /** What the wall clocks are ahead of the true time. */
  databaseAheadMs = 0
  nodeAheadMs = 0
  #nowMs = 5_000
  readonly clock: DatabaseClock

  constructor(firstLagMs = 0) {
    const note = (fields: object, text: string): void =>
      void this.logged.push(`${JSON.stringify(fields)} ${text}`)
    this.clock = new DatabaseClock({ debug: note, info: note, warn: note, error: note }, firstLagMs)
  }

  /** Beats after a heartbeat's pause, with a round trip in which the database responds in the middle. */
  beat(roundTripMs = 2) {
    this.#nowMs += nodeHeartbeatMs
    const reading = this.clock.read({
      databaseMs: startMs + this.#nowMs + this.databaseAheadMs,
      nodeMs: startMs + this.#nowMs + roundTripMs / 2 + this.nodeAheadMs,
      sentAtMs: this.#nowMs - roundTripMs / 2,
      receivedAtMs: this.#nowMs + roundTripMs / 2,
    })
    /** What the clock of the shards is ahead of the true time. */
    const aheadMs = reading.offsetMs - startMs
    return { ...reading, aheadMs }
  }
}

test('the shards have the time of the database from the first heartbeat on, whatever the clock of the node says', () => {
  const clocks = new Clocks()
  clocks.databaseAheadMs = 7_000
  clocks.nodeAheadMs = 7_000
  assert.deepEqual(clocks.beat(), {
    offsetMs: startMs + 7_000,
    aheadMs: 7_000,
    skewMs: 0,
    lagMs: 0,
  })
  for (const [nodeAheadMs, skewMs] of [
    [607_000, 600_000],
    [-53_000, -60_000],
  ] as const) {
    clocks.nodeAheadMs = nodeAheadMs
    const { aheadMs, skewMs: skew, lagMs } = clocks.beat()
    assert.deepEqual([aheadMs, skew, lagMs], [7_000, skewMs, 0])
  }
})

test('a clock of the database that jumps is followed by a tenth of the time, in both directions', () => {
  for (const direction of [1, -1]) {
    const clocks = new Clocks()
    clocks.beat()
    clocks.databaseAheadMs = direction * 10 * minuteMs
    const stepMs = direction * nodeHeartbeatMs * clockSlewRate
    for (let beat = 1; beat <= 100; beat++) assert.equal(clocks.beat().aheadMs, beat * stepMs)
    const { lagMs } = clocks.beat()
    assert.equal(lagMs, 101 * stepMs - clocks.databaseAheadMs)
    const warnings = clocks.logged.filter((line) => /has jumped/.test(line))
    assert.equal(warnings.length, 1, clocks.logged.join('\n'))
    let aheadMs = 0
    for (let beat = 0; beat < 30_000; beat++) aheadMs = clocks.beat().aheadMs
    assert.equal(aheadMs, clocks.databaseAheadMs)
  }
})

test('a node that joins while the others follow a jump begins where they are', () => {
  const clocks = new Clocks(-500_000)
  clocks.databaseAheadMs = 10 * minuteMs
  assert.equal(clocks.beat().aheadMs, 100_000)
  const row = { boot: 'b', beat: '1', address: '', workers: 1, state: 'serving' } as const
  const rows = [
    { ...row, name: 'new' },
    { ...row, name: 'a', clock: { skewMs: 0, lagMs: -499_000 } },
    { ...row, name: 'b', clock: { skewMs: 0, lagMs: 10 } },
  ]
  assert.equal(lagOf(rows), -499_000)
  assert.equal(lagOf([]), 0)
})

test('a clock of the node that differs by more than two seconds is a warning, once, until it agrees again', () => {
  const clocks = new Clocks()
  for (const [nodeAheadMs, lines] of [
    [clockDifferenceMsMax, 0],
    [clockDifferenceMsMax + 1, 1],
    [600_000, 1],
    [-10, 2],
    [-clockDifferenceMsMax - 1, 3],
  ] as const) {
    clocks.nodeAheadMs = nodeAheadMs
    clocks.beat()
    assert.equal(clocks.logged.length, lines, clocks.logged.join('\n'))
  }
  assert.match(clocks.logged[0] ?? '', /"aheadMs":2001.* differs from that of the database/)
})
