import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { QueueTimes } from '../../../../src/features/fleet/queue-times.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

test('the last polls of a shard are read as they were written', async (t) => {
  const directory = temporaryDirectory(t)
  const polls = new QueueTimes(directory)
  assert.deepEqual(await polls.read('last-polls', 3), new Map())
  const polled = [
    [100, 1_795_259_700],
    [2 ** 52 + 100, 1_795_259_701],
  ] as const
  await polls.write('last-polls', 3, polled)
  assert.deepEqual(await new QueueTimes(directory).read('last-polls', 3), new Map(polled))
  await polls.write('last-polls', 3, [])
  assert.deepEqual(await polls.read('last-polls', 3), new Map())
  assert.deepEqual(await polls.read('last-polls', 4), new Map())
})

test('what is damaged in the file is left out, and a directory that cannot be written is no error', async (t) => {
  const directory = temporaryDirectory(t)
  mkdirSync(join(directory, 'last-polls'))
  writeFileSync(join(directory, 'last-polls', '0'), '100 5\n\0\0\0\n7\n101 6\n102 ')
  assert.deepEqual(
    await new QueueTimes(directory).read('last-polls', 0),
    new Map([
      [100, 5],
      [101, 6],
    ]),
  )
  await new QueueTimes(join(directory, 'last-polls', '0')).write('last-polls', 0, [[1, 1]])
})

test('what an earlier process has written is replaced, also by nothing', async (t) => {
  const directory = temporaryDirectory(t)
  await new QueueTimes(directory).write('reported-degraded', 2, [[100, 5]])
  const later = new QueueTimes(directory)
  assert.deepEqual(await later.read('reported-degraded', 2), new Map([[100, 5]]))
  await later.write('reported-degraded', 2, [])
  assert.equal(readFileSync(join(directory, 'reported-degraded', '2'), 'utf8'), '')
})
