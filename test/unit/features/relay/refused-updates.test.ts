import assert from 'node:assert/strict'
import { appendFileSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  refusedFileBytesMax,
  RefusedUpdates,
  refusedUpdateBytesMax,
} from '../../../../src/features/relay/refused-updates.ts'
import type { RefusedUpdate } from '../../../../src/features/relay/origin.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const ours = { botId: 100, shard: 3 }
const others = { botId: 1_000, shard: 3 }

function open(t: TestContext, isShared = false) {
  const directory = temporaryDirectory(t)
  const files = join(directory, 'relay-refused')
  const read = (name: string) =>
    readFileSync(join(files, name), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map(
        (line): { readonly update_id: number; readonly bot_id: number; readonly update: string } =>
          JSON.parse(line),
      )
  const clock = new FakeClock()
  return {
    clock,
    refused: new RefusedUpdates(clock, directory, isShared),
    files,
    read,
  }
}

function update(updateId: number, text = '{}'): RefusedUpdate {
  return { updateId, update: undefined, raw: Buffer.from(text), reason: 'unknown' }
}

test('a line says which update was refused and why, in a file for its owner alone', async (t) => {
  const { refused, files, read } = open(t)
  await refused.keep(ours, [update(7, '{"update_id":7,"guest":{"text":"\\n"}}')])
  assert.deepEqual(read('3.ndjson'), [
    {
      time: 1_800_000_000,
      bot_id: 100,
      update_id: 7,
      reason: 'unknown',
      bytes: 37,
      update: '{"update_id":7,"guest":{"text":"\\n"}}',
    },
  ])
  assert.equal(statSync(files).mode & 0o777, 0o700)
  assert.equal(statSync(join(files, '3.ndjson')).mode & 0o777, 0o600)
})

test('other work has its turn between the lines of refused updates', async (t) => {
  const { clock, refused, read } = open(t)
  const soon = t.mock.method(clock, 'soon')
  const hundred = Array.from({ length: 100 }, (_, nth) => update(nth + 1, '\u{200b}'.repeat(1_000)))
  await refused.keep(ours, hundred)
  assert.equal(soon.mock.callCount(), 99)
  assert.equal(read('3.ndjson').length, 100)
})

test('the files have a bound, and so has an update in them', async (t) => {
  const { refused, files, read } = open(t)
  const text = 'x'.repeat(refusedUpdateBytesMax + 1)
  for (let id = 1; id <= 40; id++) await refused.keep(ours, [update(id, text)])
  const [current = 0, old = 0] = ['3.ndjson', '3.old.ndjson'].map(
    (name) => statSync(join(files, name)).size,
  )
  assert(current <= refusedFileBytesMax && old <= refusedFileBytesMax)
  assert.equal(read('3.ndjson').at(-1)?.update_id, 40)
  assert.equal(read('3.ndjson').at(-1)?.update.length, refusedUpdateBytesMax)
  assert.equal(readdirSync(files).length, 2)
})

test('updates that are refused together are kept in their order, across both files', async (t) => {
  const { refused, read } = open(t)
  const text = 'x'.repeat(refusedUpdateBytesMax)
  const ids = Array.from({ length: 40 }, (_, nth) => nth + 1)
  await refused.keep(
    ours,
    ids.map((id) => update(id, text)),
  )
  const left = [...read('3.old.ndjson'), ...read('3.ndjson')].map(({ update_id: id }) => id)
  assert(left.length > 20)
  assert.deepEqual(left, ids.slice(-left.length))
})

test('the lines of one bot are deleted from both files, with what a crash has cut off', async (t) => {
  const { refused, files, read } = open(t)
  for (let id = 1; id <= 20; id++) {
    await refused.keep(ours, [update(id, 'x'.repeat(refusedUpdateBytesMax))])
    await refused.keep(others, [update(id)])
  }
  appendFileSync(join(files, '3.ndjson'), '{"time":1,"bot_id":100,"upd')
  await refused.keep(ours, [update(99)])
  await refused.forget(ours)
  const left = [...read('3.old.ndjson'), ...read('3.ndjson')]
  assert.deepEqual(
    left.map((line) => [line.bot_id, line.update_id]),
    Array.from({ length: 20 }, (_, nth) => [1_000, nth + 1]),
  )
  await refused.forget({ botId: 1, shard: 9 })
})

test('the lines of a shard go with it, if another node may have it next', async (t) => {
  for (const isShared of [false, true]) {
    const { refused, files } = open(t, isShared)
    await refused.keep(ours, [update(1)])
    await refused.moved(3)
    assert.equal(readdirSync(files).length, isShared ? 0 : 1)
  }
})

test('a failure to write is a refusal, so that nothing is skipped', async () => {
  const refused = new RefusedUpdates(new FakeClock(), process.execPath, false)
  await assert.rejects(refused.keep(ours, [update(1)]), { code: 'STORE_UNAVAILABLE' })
})
