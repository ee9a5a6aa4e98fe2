import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { runPrimary } from '../../src/process/primary/primary.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { MemoryShardTable, silent, workerFile } from './support.ts'
import { memoryEventLog } from '../support/server/memory-event-log.ts'

test('a worker that fails during its start leaves no gauges', async (t) => {
  const table = new MemoryShardTable()
  const starting = runPrimary({
    clock: systemClock,
    events: memoryEventLog(),
    log: silent,
    listeners: [{ listener: 'bot', address: { host: '127.0.0.1', port: 0 } }],
    workers: 2,
    shards: 8,
    runDir: join(temporaryDirectory(t), 'run'),
    workerFile,
    shardTable: table,
    settings: { failStart: 'no room' },
  })
  await assert.rejects(starting, { message: 'no room' })
  assert.deepEqual(
    table.cleared.toSorted((a, b) => a - b),
    [0, 1],
  )
})
