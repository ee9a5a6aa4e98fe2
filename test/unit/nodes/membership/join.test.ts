import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  joinCluster,
  lastLifeOf,
  type LastNodeLife,
  lifeRecord,
} from '../../../../src/nodes/membership/join.ts'
import { nodeEvictedMs, nodeHeartbeatMs } from '../../../../src/nodes/membership/limits.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { MemoryNodeTable } from '../../../support/server/memory-node-table.ts'

type Outcome = 'waiting' | 'joined' | Error

interface Joining {
  readonly outcome: Outcome
}

const log = { debug: ignore, info: ignore, warn: ignore, error: ignore }

function ignore(): void {
  // Nothing here depends on what is logged.
}

const endedLife = { boot: 'last', hasEnded: true }

function row(name: string, address = ''): Parameters<MemoryNodeTable['add']>[0] {
  return { name, boot: `${name}-boot`, address, workers: 1 }
}

interface JoinerOptions {
  readonly name?: string
  readonly address?: string
  readonly lastLife?: LastNodeLife
}

function join(
  clock: FakeClock,
  table: MemoryNodeTable,
  { name = 'own', address = '', lastLife }: JoinerOptions = {},
): Joining {
  const joining: { outcome: Outcome } = { outcome: 'waiting' }
  joinCluster({ clock, log }, table, row(name, address), lastLife).then(
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
  let reads = 0
  const other = table.connect()
  other.onChange = () => void (reads += 1)
  const joining = join(clock, table, { lastLife: endedLife })
  await settle()
  assert.equal(joining.outcome, 'joined')
  assert.deepEqual(
    table.rows.map(({ boot }) => boot),
    ['own-boot'],
  )
  assert(!table.calls.includes('evict'), 'there was a moment without a node of this name')
  assert(reads > 0)
})

test('the row of the last life is removed at once even if another server is in the way', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.add({ ...row('own', '10.0.0.4:8450'), boot: 'last' })
  table.add(row('other'))
  const joining = join(clock, table, { address: '10.0.0.4:8450', lastLife: endedLife })
  await settle()
  assert.equal(joining.outcome, 'waiting')
  assert.deepEqual(names(table), ['other'])
})

test('without an address any other row is removed when it has stood still for long enough, even one of the same name', async () => {
  for (const boot of ['another', 'last-of-another-directory']) {
    const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
    table.add({ ...row('own'), boot })
    const joining = join(clock, table, { lastLife: endedLife })
    await clock.advance(nodeEvictedMs)
    assert.equal(joining.outcome, 'waiting')
    assert.deepEqual(table.rows[0]?.boot, boot)
    await clock.advance(2 * nodeHeartbeatMs)
    assert.equal(joining.outcome, 'joined')
    assert.deepEqual(names(table), ['own'])
  }
})

test('with an address only rows of the same name and rows without an address are watched', async () => {
  for (const [inTheWay, isWaiting] of [
    [{ ...row('own', '10.0.0.4:8450'), boot: 'another' }, true],
    [row('other'), true],
    [row('other', '10.0.0.5:8450'), false],
  ] as const) {
    const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
    table.add(inTheWay)
    const joining = join(clock, table, { address: '10.0.0.4:8450' })
    await clock.advance(nodeEvictedMs)
    assert.equal(joining.outcome, isWaiting ? 'waiting' : 'joined')
    await clock.advance(2 * nodeHeartbeatMs)
    assert.equal(joining.outcome, 'joined')
    assert.deepEqual(names(table), isWaiting ? ['own'] : ['other', 'own'])
  }
})

test('a server that beats is left alone, and the refusal names it and says what to do', async () => {
  for (const [other, address, message] of [
    [
      row('other'),
      '',
      /used by another server, the node "other", which has no --cluster-listen: stop it/,
    ],
    [row('other'), '10.0.0.4:8450', /the node "other", which has no --cluster-listen: stop it/],
    [row('own'), '10.0.0.4:8450', /the node "own", which has no --cluster-listen: stop it/],
    [
      row('other', '10.0.0.5:8450'),
      '',
      /this server has no --cluster-listen, .* the node "other" at 10\.0\.0\.5:8450/,
    ],
    [
      row('own', '10.0.0.5:8450'),
      '10.0.0.4:8450',
      /another server, at 10\.0\.0\.5:8450, is the node "own" .* another --node-name/,
    ],
  ] as const) {
    const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
    table.add({ ...other, boot: 'alive' })
    const joining = join(clock, table, { address })
    await clock.advance(nodeEvictedMs - nodeHeartbeatMs)
    assert.deepEqual(outcomesOf([joining]), ['waiting'])
    table.beatNow({ ...other, boot: 'alive' })
    await clock.advance(nodeHeartbeatMs)
    assert.match(String(joining.outcome), message)
    assert.deepEqual(names(table), [other.name])
  }
})

test('the original of a copied directory is watched like any other, and the refusal says that this is a copy', async () => {
  for (const address of ['', '10.0.0.5:8450']) {
    const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
    const original = { ...row('own', address), boot: 'last' }
    table.add(original)
    const joining = join(clock, table, { address, lastLife: { boot: 'last', hasEnded: false } })
    await clock.advance(nodeEvictedMs - nodeHeartbeatMs)
    assert.deepEqual(outcomesOf([joining]), ['waiting'])
    table.beatNow(original)
    await clock.advance(nodeHeartbeatMs)
    assert.match(String(joining.outcome), /is a copy of that of a server that is alive, so use an/)
    assert.deepEqual(
      table.rows.map(({ boot }) => boot),
      ['last'],
    )
  }
})

test('a server that beats right before it would be removed is left alone', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  table.add(row('other'))
  // The rows that the other one reads are older than the heartbeat.
  table.read = async () => {
    const read = table.readNow()
    table.calls.push('read')
    if ((table.calls.length - 2) * nodeHeartbeatMs >= nodeEvictedMs) table.beatNow(row('other'))
    return read
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

test('of two servers with one name and addresses exactly one joins, and the other is refused', async () => {
  const [clock, table] = [new FakeClock(), new MemoryNodeTable()]
  const both = ['1', '2'].map((boot) => {
    const joining: { outcome: Outcome } = { outcome: 'waiting' }
    const self = { ...row('own', `10.0.0.${boot}:8450`), boot }
    joinCluster({ clock, log }, table, self, undefined).then(
      () => (joining.outcome = 'joined'),
      (error: unknown) => (joining.outcome = error instanceof Error ? error : new Error('odd')),
    )
    return joining
  })
  await settle()
  assert.deepEqual(outcomesOf(both), ['joined', 'waiting'])
  for (let beat = 0; beat < 3; beat++) {
    await clock.advance(nodeHeartbeatMs)
    for (const each of table.rows) table.beatNow(each)
  }
  assert.deepEqual(outcomesOf(both), ['joined', 'refused'])
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

test('a life has certainly ended only for a server that holds the lock of its record', () => {
  const record = lifeRecord('0123456789abcdef', '7:42:boot-1')
  const boot = '0123456789abcdef'
  assert.deepEqual(lastLifeOf(record, '7:42:boot-1'), { boot, hasEnded: true })
  for (const lock of ['7:43:boot-1', '8:42:boot-1', '7:42:boot-2', undefined]) {
    assert.deepEqual(lastLifeOf(record, lock), { boot, hasEnded: false })
  }
})

test('a record without a lock proves nothing, and an empty one has no life', () => {
  for (const lock of ['7:42:boot-1', undefined]) {
    assert.deepEqual(lastLifeOf('0123456789abcdef\n', lock), {
      boot: '0123456789abcdef',
      hasEnded: false,
    })
    assert.deepEqual(lastLifeOf(lifeRecord('0123456789abcdef', undefined), lock)?.hasEnded, false)
    assert.equal(lastLifeOf('\n', lock), undefined)
  }
})
