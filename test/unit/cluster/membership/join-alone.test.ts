import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joinAlone } from '../../../../src/cluster/membership/join-alone.ts'
import { nodeEvictedMs, nodeHeartbeatMs } from '../../../../src/cluster/membership/limits.ts'
import { FakeClock, settle } from '../../../support/fake-clock.ts'
import { MemoryNodeTable } from '../../../support/memory-node-table.ts'

type Outcome = 'waiting' | 'joined' | Error

interface Joining {
  readonly outcome: Outcome
}

const log = { debug: ignore, info: ignore, warn: ignore, error: ignore }

function ignore(): void {
  // Nothing here depends on what is logged.
}

function row(name: string, address = ''): Parameters<MemoryNodeTable['add']>[0] {
  return { name, boot: `${name}-boot`, address, workers: 1 }
}

function join(
  clock: FakeClock,
  table: MemoryNodeTable,
  { name = 'own', lastBoot }: { readonly name?: string; readonly lastBoot?: string } = {},
): Joining {
  const joining: { outcome: Outcome } = { outcome: 'waiting' }
  joinAlone({ clock, log, table, self: row(name), lastBoot }).then(
    () => (joining.outcome = 'joined'),
    (error: unknown) => (joining.outcome = error instanceof Error ? error : new Error('odd')),
  )
  return joining
}

/** In the order of the alphabet. */
function outcomesOf(joinings: readonly Joining[]): string[] {
  const outcomes = joinings.map(({ outcome }) => (outcome instanceof Error ? 'refused' : outcome))
  return outcomes.toSorted((a, b) => a.localeCompare(b))
}

function names(table: MemoryNodeTable): string[] {
  return table.rows.map(({ name }) => name)
}

test('in an empty table a server joins at once', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  const joining = join(clock, table)
  await settle()
  assert.equal(joining.outcome, 'joined')
  assert.deepEqual(names(table), ['own'])
})

test('the row of the last life of the own directory is removed at once', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.add({ ...row('own'), boot: 'last' })
  const joining = join(clock, table, { lastBoot: 'last' })
  await clock.advance(nodeHeartbeatMs)
  assert.equal(joining.outcome, 'joined')
  assert.deepEqual(
    table.rows.map(({ boot }) => boot),
    ['own-boot'],
  )
})

test('any other row is removed only when it has stood still for long enough, even one of the same name', async () => {
  for (const boot of ['another', 'last-of-another-directory']) {
    const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
    table.add({ ...row('own'), boot })
    const joining = join(clock, table, { lastBoot: 'last' })
    await clock.advance(nodeEvictedMs)
    assert.equal(joining.outcome, 'waiting')
    assert.deepEqual(table.rows[0]?.boot, boot)
    await clock.advance(2 * nodeHeartbeatMs)
    assert.equal(joining.outcome, 'joined')
    assert.deepEqual(names(table), ['own'])
  }
})

test('a server that beats is left alone, and named in the refusal', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.add(row('other', '10.0.0.5:8450'))
  const joining = join(clock, table)
  await clock.advance(nodeEvictedMs - nodeHeartbeatMs)
  table.beatNow(row('other'))
  await clock.advance(nodeHeartbeatMs)
  assert.match(String(joining.outcome), /another server, the node "other" at 10\.0\.0\.5:8450/)
  assert.deepEqual(names(table), ['other'])
})

test('a server that beats right before it would be removed is left alone', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.add(row('other'))
  // The rows that the other one reads are older than the heartbeat.
  table.nodes = async () => {
    const { rows } = table
    table.calls.push('nodes')
    if ((table.calls.length - 2) * nodeHeartbeatMs >= nodeEvictedMs) table.beatNow(row('other'))
    return rows
  }
  const joining = join(clock, table)
  await clock.advance(2 * nodeEvictedMs)
  assert(table.calls.includes('evict'))
  assert.match(String(joining.outcome), /another server/)
  assert.deepEqual(names(table), ['other'])
})

test('of two servers that start at once exactly one joins, and the other is refused when that one beats', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  const both = [join(clock, table, { name: 'a' }), join(clock, table, { name: 'b' })]
  await settle()
  assert.deepEqual(outcomesOf(both), ['joined', 'waiting'])
  const [winner] = names(table)
  for (let beat = 0; beat < 3; beat++) {
    await clock.advance(nodeHeartbeatMs)
    table.beatNow(row(winner ?? ''))
  }
  assert.deepEqual(outcomesOf(both), ['joined', 'refused'])
  assert.deepEqual(names(table), [winner])
})

test('two servers that wait for the same dead one: exactly one joins', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.add(row('dead'))
  const both = [join(clock, table, { name: 'a' }), join(clock, table, { name: 'b' })]
  await clock.advance(nodeEvictedMs + 2 * nodeHeartbeatMs)
  assert.deepEqual(outcomesOf(both), ['joined', 'waiting'])
  assert.equal(table.rows.length, 1)
})

test('a table that fails ends the attempt, and nothing was added', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.failure = new Error('connection refused')
  const joining = join(clock, table)
  await settle()
  assert.match(String(joining.outcome), /connection refused/)
  assert.deepEqual(names(table), [])
})
