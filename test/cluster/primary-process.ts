/** A primary in a separate process, for the tests that send it signals. It prints its port and its workers in one line. */
import { systemClock } from '../../src/kit/clock.ts'
import { runPrimary } from '../../src/process/primary/primary.ts'
import { MemoryShardTable, silent, workerFile } from './support.ts'
import { memoryEventLog } from '../support/server/memory-event-log.ts'

const primary = await runPrimary({
  clock: systemClock,
  events: memoryEventLog(),
  log: silent,
  listeners: [{ listener: 'bot', address: { host: '127.0.0.1', port: 0 } }],
  workers: 2,
  shards: 8,
  runDir: process.argv[2] ?? '',
  workerFile,
  shardTable: new MemoryShardTable(),
  settings: {},
})
const [bound] = primary.addresses
const port = bound !== undefined && 'port' in bound.address ? bound.address.port : 0
process.stdout.write(`${JSON.stringify({ port, pids: primary.workerPids() })}\n`)
