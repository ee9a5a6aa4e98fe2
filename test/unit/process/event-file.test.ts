import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { EventFile, eventFileLinesMax } from '../../../src/process/event-file.ts'
import { eventsKeptMax } from '../../../src/kit/limits.ts'
import { loggedEvent } from '../../../src/kit/operator-event.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const event = (id: number) =>
  loggedEvent(id, { type: 'queue.high', timeMs: id, botId: 1 }, undefined)

async function open(directory: string, failures: unknown[] = []) {
  const file = new EventFile(directory, (error) => failures.push(error))
  return { file, stored: await file.open() }
}

function setUp(t: TestContext): { readonly directory: string; readonly path: string } {
  const directory = temporaryDirectory(t)
  return { directory, path: join(directory, 'events') }
}

test('events and the position of their delivery are there after a restart', async (t) => {
  const { directory, path } = setUp(t)
  const first = await open(directory)
  assert.deepEqual(first.stored, { events: [], deliveredTo: undefined })
  for (const id of [1, 2, 3]) first.file.add(event(id))
  first.file.deliveredTo(2)
  await first.file.close()
  const { stored } = await open(directory)
  assert.deepEqual(stored, { events: [1, 2, 3].map(event), deliveredTo: 2 })
  assert.equal(statSync(join(path, '0.ndjson')).mode & 0o777, 0o600)
})

test('a torn line is skipped, and the next event is not lost with it', async (t) => {
  const { directory, path } = setUp(t)
  const { file } = await open(directory)
  file.add(event(1))
  await file.close()
  appendFileSync(join(path, '0.ndjson'), '{"id":2,"type":"queue.hi')
  const again = await open(directory)
  assert.deepEqual(again.stored.events, [event(1)])
  again.file.add(event(3))
  await again.file.close()
  assert.deepEqual((await open(directory)).stored.events, [event(1), event(3)])
})

test('a damaged id or type is skipped, because all later ids would be higher', async (t) => {
  const { directory, path } = setUp(t)
  const { file } = await open(directory)
  file.add(event(1))
  file.deliveredTo(1)
  await file.close()
  for (const id of ['1e300', '-1', '1.5', '999999999999999', '"2"']) {
    appendFileSync(join(path, '0.ndjson'), `{"id":${id},"type":"queue.high","time":1}\n`)
    appendFileSync(join(path, '0.ndjson'), `{"delivered_to":${id}}\n`)
  }
  appendFileSync(join(path, '0.ndjson'), '{"id":2,"type":"a\\nb","time":1}\n[]\nnull\n')
  const { stored } = await open(directory)
  assert.deepEqual(stored, { events: [event(1)], deliveredTo: 1 })
})

test('the two files take turns, have all events that are kept, and never grow further', async (t) => {
  const { directory, path } = setUp(t)
  let { file } = await open(directory)
  file.deliveredTo(1)
  const count = 5 * eventFileLinesMax + 10
  for (let id = 1; id <= count; id++) {
    file.add(event(id))
    if (id % 1_000 === 0) await file.close()
  }
  await file.close()
  const { stored } = await open(directory)
  assert.equal(stored.events.length, eventsKeptMax)
  assert.equal(stored.events.at(-1)?.id, count)
  assert.equal(stored.events[0]?.id, count - eventsKeptMax + 1)
  assert.equal(stored.deliveredTo, 1, 'the position is in each file')
  for (const name of readdirSync(path)) {
    const lines = readFileSync(join(path, name), 'utf8').split('\n').length
    assert(lines <= eventFileLinesMax + 1_002, `${name} has ${lines} lines`)
  }
  // The newer file is the current one after a restart, too.
  ;({ file } = await open(directory))
  file.add(event(count + 1))
  await file.close()
  const { events } = (await open(directory)).stored
  assert.deepEqual(
    events.slice(-2).map(({ id }) => id),
    [count, count + 1],
  )
})

test('a disk that does not write costs lines only, and later ones are written again', async (t) => {
  const { directory, path } = setUp(t)
  const failures: unknown[] = []
  const { file } = await open(directory, failures)
  rmSync(path, { recursive: true })
  file.add(event(1))
  await file.close()
  assert.equal(failures.length, 1)
  mkdirSync(path)
  chmodSync(path, 0o700)
  file.add(event(2))
  await file.close()
  assert.deepEqual((await open(directory)).stored.events, [event(2)])
})
