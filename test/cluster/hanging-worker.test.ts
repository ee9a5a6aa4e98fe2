/** Requests that block their worker forever, and the watchdog that kills it, with shorter times. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { runPrimary } from '../../src/process/primary/primary.ts'
import { SharedMemory } from '../../src/process/shared-memory/shared-memory.ts'
import { botOf } from '../support/server/bot-of.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { ask, silent, viaWorker0, workerFile } from './support.ts'
import { memoryEventLog } from '../support/server/memory-event-log.ts'

test('a request that hangs its worker is refused and does not hang a second worker', async (t) => {
  const directory = temporaryDirectory(t)
  const memoryFile = join(directory, 'memory')
  const memory = SharedMemory.create({ path: memoryFile, workers: 2, shards: 8 })
  const primary = await runPrimary({
    clock: systemClock,
    events: memoryEventLog(),
    log: silent,
    listeners: [
      { listener: 'bot', address: { host: '127.0.0.1', port: 0 } },
      { listener: 'private', address: { host: '127.0.0.1', port: 0 } },
    ],
    workers: 2,
    shards: 8,
    runDir: join(directory, 'run'),
    workerFile,
    shardTable: memory,
    settings: { memoryFile },
    watchdogTimes: { askPeriodMs: 100, hangMs: 1_000, hangSurelyMs: 300 },
  })
  t.after(() => primary.close())
  const [botPort = 0, privatePort = 0] = primary.addresses.map(({ address }) =>
    'port' in address ? address.port : 0,
  )
  const calls = join(directory, 'calls')
  const callCount = (): number => readFileSync(calls, 'utf8').split('\n').length - 1

  const bot = await viaWorker0(botPort, `POST /bot${botOf(1)}:x/spin?calls=${calls}`)
  assert.match(bot, /^HTTP\/1.1 503 [\s\S]*"ok":false,"error_code":503/)
  assert.equal(callCount(), 1)
  assert.equal(memory.shardTable.hangs(1), 1)
  const seen = await ask({ address: botPort, path: `/bot${botOf(1)}:x/echo` })
  assert.equal(JSON.parse(seen.body).generation, 2)

  // After any other end of its worker, a push with a key would be repeated.
  const line = `POST /v1/bots/${botOf(1)}/updates?calls=${calls}`
  const push = await viaWorker0(privatePort, line, 'Idempotency-Key: k\r\n')
  assert.match(push, /^HTTP\/1.1 503 [\s\S]*{"error":{"code":"OUTCOME_UNKNOWN"/)
  assert.equal(callCount(), 2)
  assert.deepEqual([memory.shardTable.hangs(0), memory.shardTable.hangs(1)], [0, 2])
})
