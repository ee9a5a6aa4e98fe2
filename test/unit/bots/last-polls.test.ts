import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { LastPolls } from '../../../src/bots/last-polls.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

test('the last polls of a shard are read as they were written', async (t) => {
  const directory = temporaryDirectory(t)
  const polls = new LastPolls(directory)
  assert.deepEqual(await polls.read(3), new Map())
  const polled = [
    [100, 1_795_259_700],
    [2 ** 52 + 100, 1_795_259_701],
  ] as const
  await polls.write(3, polled)
  assert.deepEqual(await new LastPolls(directory).read(3), new Map(polled))
  await polls.write(3, [])
  assert.deepEqual(await polls.read(3), new Map())
  assert.deepEqual(await polls.read(4), new Map())
})

test('what is damaged in the file is left out, and a directory that cannot be written is no error', async (t) => {
  const directory = temporaryDirectory(t)
  mkdirSync(join(directory, 'last-polls'))
  writeFileSync(join(directory, 'last-polls', '0'), '100 5\n\0\0\0\n7\n101 6\n102 ')
  assert.deepEqual(
    await new LastPolls(directory).read(0),
    new Map([
      [100, 5],
      [101, 6],
    ]),
  )
  await new LastPolls(join(directory, 'last-polls', '0')).write(0, [[1, 1]])
})
