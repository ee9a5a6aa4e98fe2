import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GroupCommit, groupCostMax } from '../../../src/shard/group-commit.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'

interface Write {
  readonly operations: readonly string[]
  resolve(): void
  reject(error: unknown): void
}

function setUp() {
  const clock = new FakeClock()
  const writes: Write[] = []
  const log: string[] = []
  const groups = new GroupCommit<string>({
    clock,
    costOf: (operation) => operation.length,
    write: (operations) => {
      return new Promise((resolve, reject) => writes.push({ operations, resolve, reject }))
    },
    onCommitted: (operations) => void log.push(`committed ${operations.join(' ')}`),
    onFailed: (error) => void log.push(`failed ${String(error)}`),
  })
  const add = (name: string, waited = true): Promise<void> =>
    groups.add([name], waited).then(
      () => void log.push(`done ${name}`),
      (error: unknown) => {
        const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
        log.push(`lost ${name}: ${code}`)
      },
    )
  return { clock, writes, log, groups, add }
}

test('operations that arrive during a write join the next group, in their order', async () => {
  const { writes, log, add } = setUp()
  void add('a')
  void add('b')
  assert.equal(writes.length, 0, 'the turn goes on')
  await settle()
  void add('c')
  void add('d')
  await settle()
  assert.deepEqual(
    writes.map(({ operations }) => operations),
    [['a', 'b']],
  )
  writes[0]!.resolve()
  await settle()
  assert.deepEqual(log, ['committed a b', 'done a', 'done b'])
  assert.deepEqual(writes[1]?.operations, ['c', 'd'])
  writes[1]?.resolve()
  await settle()
  assert.deepEqual(log.slice(3), ['committed c d', 'done c', 'done d'])
})

test('a group without waiting callers lingers for 20 ms, and others join it', async () => {
  const { clock, writes, add } = setUp()
  void add('confirm', false)
  await clock.advance(19)
  void add('delete', false)
  assert.equal(writes.length, 0)
  await clock.advance(1)
  assert.deepEqual(writes[0]?.operations, ['confirm', 'delete'])
  writes[0]?.resolve()
  await settle()
  void add('confirm 2', false)
  await clock.advance(5)
  void add('push')
  await settle()
  assert.deepEqual(writes[1]?.operations, ['confirm 2', 'push'])
  assert.equal(clock.timers, 0)
})

test('operations without waiting callers linger even after a write', async () => {
  const { clock, writes, add } = setUp()
  void add('push')
  await settle()
  void add('confirm', false)
  writes[0]?.resolve()
  await settle()
  assert.equal(writes.length, 1)
  await clock.advance(20)
  assert.deepEqual(writes[1]?.operations, ['confirm'])
})

test('a failed write fails its group and all later ones, and nothing is accepted until the reset', async () => {
  const { writes, log, groups, add } = setUp()
  void add('a')
  await settle()
  void add('b')
  void add('c', false)
  writes[0]?.reject('EIO')
  await settle()
  void add('d')
  await settle()
  assert.deepEqual(log, [
    'failed EIO',
    'lost a: OUTCOME_UNKNOWN',
    'lost b: STORE_UNAVAILABLE',
    'lost c: STORE_UNAVAILABLE',
    'lost d: STORE_UNAVAILABLE',
  ])
  groups.reset()
  void add('e')
  await settle()
  assert.deepEqual(writes[1]?.operations, ['e'])
})

test('another write that failed makes the outcome of the current one unknown', async () => {
  const { writes, log, groups, add } = setUp()
  void add('a')
  await settle()
  groups.fail('ENOSPC')
  groups.fail('ENOSPC')
  await settle()
  assert.deepEqual(log, ['failed ENOSPC', 'lost a: OUTCOME_UNKNOWN'])
  groups.reset()
  void add('b')
  await settle()
  writes[0]?.resolve()
  await settle()
  assert.equal(log.length, 2, 'a late answer belongs to nobody')
  writes[1]?.resolve()
  await settle()
  assert.deepEqual(log.slice(2), ['committed b', 'done b'])
})

test('a failure during the lingering leaves no timer', async () => {
  const { clock, writes, groups, add } = setUp()
  void add('a', false)
  groups.fail('EIO')
  assert.equal(clock.timers, 0)
  groups.reset()
  void add('b', false)
  await clock.advance(20)
  assert.deepEqual(writes[0]?.operations, ['b'])
})

test('a group is cut when it has enough work, by many operations or by a few expensive ones', async () => {
  const { writes, groups } = setUp()
  const most = Array.from({ length: groupCostMax }, () => 'x')
  void groups.add(most, true)
  void groups.add(['y'], true)
  await settle()
  assert.equal(writes[0]?.operations.length, groupCostMax)
  writes[0]?.resolve()
  await settle()
  assert.deepEqual(writes[1]?.operations, ['y'])
  const costly = 'z'.repeat(groupCostMax)
  for (const name of [costly, 'a', 'b', costly, 'c']) void groups.add([name], true)
  for (let group = 1; group < 4; group++) {
    writes[group]?.resolve()
    await settle()
  }
  assert.deepEqual(
    writes.slice(2).map(({ operations }) => operations.map((name) => name[0]).join('')),
    ['z', 'abz', 'c'],
  )
})

test('a flush ends the lingering, and resolves when everything is written or has failed', async () => {
  const { writes, log, groups, add } = setUp()
  await groups.flush()
  void add('a', false)
  void groups.flush().then(() => log.push('flushed'))
  await settle()
  assert.deepEqual(writes[0]?.operations, ['a'])
  void add('b', false)
  writes[0]?.resolve()
  await settle()
  assert(!log.includes('flushed'))
  const failed = groups.flush()
  await settle()
  writes[1]?.reject('EIO')
  await failed
  await settle()
  assert(log.includes('flushed'))
})
