import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  openSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SharedMemory } from '../../../../src/process/shared-memory/shared-memory.ts'
import { startChild } from '../../../support/kit/child-process.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { nativeChildPath } from '../../../support/kit/native-child.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

test('one mapping reads what another one writes', (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const primary = SharedMemory.create({ path, workers: 3, shards: 8 })
  const worker = SharedMemory.attach(path)
  assert.deepEqual([worker.workers, worker.shards], [3, 8])
  primary.shardTable.assign(7, { worker: 2, generation: 1 })
  assert.equal(worker.shardTable.owner(7)?.worker, 2)
  worker.slot(2, 1).add('updates_pushed', 4)
  assert.equal(primary.total('updates_pushed'), 4)
  assert.equal(worker.workerTable.of(2).state, 'down')
  const record = {
    state: 'serving',
    pid: 4_711,
    generation: 3,
    restarts: 1,
    servingSinceS: 9,
  } as const
  primary.noteWorker(2, record)
  assert.deepEqual(worker.workerTable.of(2), record)
  assert.equal(worker.workerTable.of(1).pid, 0)
  assert.equal(primary.workerTable.turnedAtS(2), 9)
  worker.workerTable.turned(2, 4_710, 20)
  assert.equal(primary.workerTable.turnedAtS(2), 9, 'a process that was replaced')
  worker.workerTable.turned(2, 4_711, 20)
  assert.equal(primary.workerTable.turnedAtS(2), 20)
  primary.noteWorker(2, { ...record, state: 'down', servingSinceS: 0 })
  assert.equal(primary.workerTable.turnedAtS(2), 0)
  assert.equal(worker.clients.mayRefuseNow('192.0.2.1', 1_000_000), true)
  assert.equal(primary.clients.mayRefuseNow('192.0.2.1', 1_000_001), false)
})

test('the slots of workers and of their successive processes do not affect each other', (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const memory = SharedMemory.create({ path, workers: 2, shards: 1 })
  for (const worker of [0, 1]) {
    for (const generation of [0, 1, 2, 3]) {
      const slot = memory.slot(worker, generation)
      slot.add('requests_bot', 10 ** (worker * 4 + generation))
      slot.set('polls_waiting', 1)
    }
  }
  assert.deepEqual(
    [0, 1].map((worker) => [
      memory.ofWorker(worker, 'requests_bot'),
      memory.ofWorker(worker, 'polls_waiting'),
    ]),
    [
      [1_111, 4],
      [11_110_000, 4],
    ],
  )
  assert.equal(memory.totals().requests_bot, 11_111_111)
  // The last table begins where the last slot ends.
  assert.equal(memory.clients.mayRefuseNow('192.0.2.1', 1_000_000), true)
  memory.slot(1, 3).set('polls_waiting', 5)
  assert.equal(memory.clients.mayRefuseNow('192.0.2.1', 1_000_000), false)
})

test('clearing the slot of a dead process drops its gauges and keeps its counters', (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const memory = SharedMemory.create({ path, workers: 2, shards: 1 })
  memory.slot(1, 4).add('updates_pushed', 100)
  memory.slot(1, 4).add('polls_waiting', 5)
  memory.slot(1, 5).add('updates_pushed', 10)
  memory.slot(1, 5).add('polls_waiting', 2)
  memory.release({ worker: 1, generation: 4 })
  assert.equal(memory.total('updates_pushed'), 110)
  assert.equal(memory.total('polls_waiting'), 2, 'the gauges of the successor stay')
  memory.slot(1, 8).add('updates_pushed', 1)
  assert.equal(memory.totals().updates_pushed, 111)
})

test('the total of a gauge that shows the worst worker is the worst value', (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const memory = SharedMemory.create({ path, workers: 2, shards: 1 })
  memory.slot(0, 0).set('event_loop_delay_max_us', 30_000)
  memory.slot(1, 0).set('event_loop_delay_max_us', 20_000)
  memory.slot(1, 1).set('event_loop_delay_max_us', 10_000)
  assert.equal(memory.total('event_loop_delay_max_us'), 30_000)
  assert.equal(memory.totals().event_loop_delay_max_us, 30_000)
  assert.deepEqual(
    [0, 1].map((worker) => memory.ofWorker(worker, 'event_loop_delay_max_us')),
    [30_000, 20_000],
  )
})

test('the shards of a process that is gone are not served, and those of its successor and of others are', (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const memory = SharedMemory.create({ path, workers: 2, shards: 4 })
  const owners = [
    { worker: 0, generation: 4 },
    { worker: 1, generation: 4 },
    { worker: 1, generation: 5 },
    { worker: 1, generation: 4 },
  ]
  for (const [shard, owner] of owners.entries()) {
    memory.assign(shard, owner)
    memory.markServing(shard, owner.generation)
  }
  memory.release({ worker: 1, generation: 4 })
  assert.deepEqual(
    owners.map((_owner, shard) => memory.shardTable.owner(shard)),
    [owners[0], undefined, owners[2], undefined],
  )
  assert.deepEqual(
    owners.map((_owner, shard) => memory.shardTable.isServed(shard)),
    [true, false, true, false],
  )
})

test('a start begins with zeros in a private file and does not affect processes that map the old one', (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const old = SharedMemory.create({ path, workers: 1, shards: 1 })
  old.slot(0).add('updates_pushed', 5)
  old.shardTable.assign(0, { worker: 0, generation: 0 })
  const fresh = SharedMemory.create({ path, workers: 2, shards: 4 })
  assert.equal(fresh.total('updates_pushed'), 0)
  assert.equal(fresh.shardTable.owner(0), undefined)
  assert.equal(old.total('updates_pushed'), 5)
  assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('impossible sizes, workers and generations are RangeErrors', (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  for (const [workers, shards] of [
    [0, 1],
    [257, 1],
    [1, 0],
    [1, 257],
    [1.5, 1],
  ] as const) {
    assert.throws(() => SharedMemory.create({ path, workers, shards }), RangeError)
  }
  const memory = SharedMemory.create({ path, workers: 2, shards: 1 })
  assert.throws(() => memory.slot(2), RangeError)
  assert.throws(() => memory.slot(-1), RangeError)
  assert.throws(() => memory.slot(-1, 4), RangeError)
  assert.throws(() => memory.slot(1, -1), RangeError)
  assert.throws(() => memory.slot(0.5), RangeError)
  assert.throws(() => memory.slot(0, 0.5), RangeError)
})

test('a foreign, truncated, unfinished or other-version file is refused with its name', (t) => {
  const dir = temporaryDirectory(t)
  const path = join(dir, 'shared')
  SharedMemory.create({ path, workers: 2, shards: 4 })

  const foreign = join(dir, 'foreign')
  writeFileSync(foreign, 'x'.repeat(5_000))
  assert.throws(
    () => SharedMemory.attach(foreign),
    /foreign is not the shared memory of a Postbote/,
  )
  truncateSync(foreign, 10)
  assert.throws(
    () => SharedMemory.attach(foreign),
    /foreign is not the shared memory of a Postbote/,
  )

  const changed = (offset: number, value: number): string => {
    const copy = join(dir, `changed-${offset}-${value}`)
    copyFileSync(path, copy)
    const file = openSync(copy, 'r+')
    writeSync(file, Buffer.from(Int32Array.of(value).buffer), 0, 4, offset)
    closeSync(file)
    return copy
  }
  assert.throws(() => SharedMemory.attach(changed(0, 0)), /its primary has not finished it/)
  assert.throws(
    () => SharedMemory.attach(changed(4, 9)),
    /has layout version 9, this program has 10: restart the whole server/,
  )
  assert.throws(() => SharedMemory.attach(changed(8, 3)), /is not the shared memory/)
  assert.throws(() => SharedMemory.attach(changed(8, 257)), /is not the shared memory/)
  assert.throws(() => SharedMemory.attach(changed(12, 0)), /is not the shared memory/)
  truncateSync(path, 5_000)
  assert.throws(() => SharedMemory.attach(path), /is not the shared memory/)
})

test('counters to which threads of two processes add at once are exact and never decrease', async (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const memory = SharedMemory.create({ path, workers: 1, shards: 1 })
  // Both counters cross the end of a word on the way.
  fill(memory, 'updates_pushed', 2 ** 31 - 2_000_000)
  fill(memory, 'updates_confirmed', 2 ** 33 - 1_500_000)
  const children = [1, 2].map(() => startChild(t, [nativeChildPath, 'count', path, '2', '800000']))
  const running = new Set(children)
  const exits = children.map(async (child) => {
    const [code] = await once(child.process, 'exit')
    running.delete(child)
    assert.equal(code, 0)
  })
  for (const child of children) {
    for (let thread = 0; thread < 2; thread++) assert.equal(await child.nextLine(), 'ready')
  }
  memory.shardTable.assign(0, { worker: 0, generation: 0 })
  let readings = 0
  const last = { updates_pushed: 0, updates_confirmed: 0 }
  while (running.size > 0) {
    for (const name of ['updates_pushed', 'updates_confirmed'] as const) {
      for (let round = 0; round < 1_000; round++) {
        const value = memory.total(name)
        assert.ok(value >= last[name], `${name} went back from ${last[name]} to ${value}`)
        if (value > last[name]) readings++
        last[name] = value
      }
    }
    await settle()
  }
  await Promise.all(exits)
  assert.equal(memory.total('updates_pushed'), 2 ** 31 + 1_200_000)
  assert.equal(memory.total('updates_confirmed'), 2 ** 33 + 1_700_000)
  assert.ok(readings > 10, `only ${readings} readings saw the counters move`)
})

test('another process sees a shard assigned, and this one sees it served', async (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const { shardTable } = SharedMemory.create({ path, workers: 200, shards: 4 })
  for (const shard of [0, 1, 2]) {
    shardTable.assign(shard, { worker: 0, generation: 0 })
    shardTable.markServing(shard, 0)
  }
  const worker = startChild(t, [nativeChildPath, 'serve', path])
  assert.equal(await worker.nextLine(), 'ready')
  const allServed = (): boolean => [0, 1, 2, 3].every((shard) => shardTable.isServed(shard))
  assert.equal(allServed(), false)
  shardTable.assign(3, { worker: 199, generation: 1_000_000 })
  assert.equal(await worker.nextLine(), '{"worker":199,"generation":1000000}')
  assert.equal(allServed(), true)
})

test('processes that take creation slots of the same addresses get twenty of each together', async (t) => {
  const path = join(temporaryDirectory(t), 'shared')
  const { shardTable } = SharedMemory.create({ path, workers: 1, shards: 1 })
  const children = [1, 2].map(() =>
    startChild(t, [nativeChildPath, 'creations', path, '5000', '15']),
  )
  for (const child of children) assert.equal(await child.nextLine(), 'ready')
  shardTable.assign(0, { worker: 0, generation: 0 })
  const granted: number[] = []
  for (const child of children) granted.push(Number(await child.nextLine()))
  assert.ok(
    granted.every((count) => count > 0),
    'no process was shut out',
  )
  const total = granted.reduce((sum, count) => sum + count, 0)
  assert.ok(Math.abs(total - 100_000) <= 10, `${total} slots of 100,000 were granted`)
})

function fill(
  memory: SharedMemory,
  name: 'updates_pushed' | 'updates_confirmed',
  to: number,
): void {
  for (let left = to; left > 0; left -= 2 ** 31 - 1) {
    memory.slot(0).add(name, Math.min(left, 2 ** 31 - 1))
  }
}
