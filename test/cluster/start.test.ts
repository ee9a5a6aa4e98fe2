/** What a start does without any options. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server/server.ts'

test('a directory with fewer shards than CPUs starts without an option for the number of workers', async (t) => {
  const server = await startServer(t, { workers: 1, flags: ['--shards=1'] })
  const again = await server.restart({ workers: 'unset', flags: [] })
  assert.equal(again.workerPids().length, 1)
})
