import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { openRecounted } from '../../src/shard/recovery/open-recounted.ts'
import { damagedFiles } from '../../src/shard/data-directory.ts'
import { levelEngine } from '../../src/store/level/level-engine.ts'
import type { PushOperation } from '../../src/shard/operations.ts'
import { Shard } from '../../src/shard/shard.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const botId = 4_711
const firstId = 3_000_000
const state = {
  nextId: firstId,
  floor: firstId,
  liveCount: 0,
  liveBytes: 0,
  idempotencyDay: 0,
  idempotencyCount: 0,
}

async function open(t: TestContext, directory: string): Promise<Shard> {
  const log = { debug: skip, info: skip, warn: skip, error: skip }
  await levelEngine.files.makeNew(directory)
  const opened = await levelEngine.open({ shard: 0, directory, clock: systemClock, log })
  const shard = new Shard({
    index: 0,
    clock: systemClock,
    log,
    ...opened,
    onCommitted: skip,
    onReset: skip,
  })
  await openRecounted({ shard, opened })
  t.after(() => shard.close())
  return shard
}

function push(updateId: number): PushOperation {
  return {
    kind: 'push',
    queue: botId,
    updateId,
    typeNumber: 0,
    orderingKey: '',
    acceptedAtS: 1,
    expiresAtS: 4_000_000_000,
    text: Buffer.from(`"message":{"text":"number ${updateId}"}`),
  }
}

/** Creates a shard whose process was killed and whose damaged log has lost the last of three pushes. */
async function damagedShard(t: TestContext, { isRemoved = false } = {}): Promise<string> {
  const directory = join(temporaryDirectory(t), 'shard')
  const copy = join(temporaryDirectory(t), 'copy')
  const written = await open(t, directory)
  const record = { firstName: 'a', username: 'a', secrets: [], createdAtMs: 1 }
  await written.commit([{ kind: 'bot', queue: botId, record }], { waited: true })
  if (isRemoved) {
    await written.commit([{ kind: 'bot', queue: botId, record: null }], { waited: true })
  }
  written.track(botId, state)
  for (let id = firstId; id < firstId + 3; id++) await written.commit([push(id)], { waited: true })
  // Copies the files as a killed process leaves them, with everything in the log.
  cpSync(directory, copy, { recursive: true })
  await written.close()
  const [name = ''] = readdirSync(copy).filter((file) => file.endsWith('.log'))
  const bytes = readFileSync(join(copy, name))
  const at = bytes.lastIndexOf(`number ${firstId + 2}`)
  assert(at > 0)
  bytes[at] = 0
  writeFileSync(join(copy, name), bytes)
  rmSync(directory, { recursive: true })
  cpSync(copy, directory, { recursive: true })
  return directory
}

test('an id that was lost with a damaged log is not used again, even if its bot is first loaded one start later', async (t) => {
  const directory = await damagedShard(t)
  const salvaging = await open(t, directory)
  await salvaging.close()
  assert.equal(readdirSync(join(directory, 'damaged', '1')).includes('pending'), false)
  const later = await open(t, directory)
  const [stored] = await later.load([botId])
  assert(stored?.state !== undefined)
  assert(stored.state.nextId > firstId + 2, `the next id is ${stored.state.nextId}`)
  assert.equal(stored.state.liveCount, 2)
})

test('the id is not used again either if its bot was removed and is registered again one start later', async (t) => {
  const directory = await damagedShard(t, { isRemoved: true })
  const salvaging = await open(t, directory)
  await salvaging.close()
  const later = await open(t, directory)
  const [stored] = await later.load([botId])
  assert.equal(stored?.bot, undefined)
  assert(stored?.state !== undefined)
  assert(stored.state.nextId > firstId + 2, `the next id is ${stored.state.nextId}`)
})

function skip(): void {
  // The test checks what is stored, not what is logged.
}

test('/readyz names the copies of damaged files', async (t) => {
  const dataDir = temporaryDirectory(t)
  assert.deepEqual(await damagedFiles(dataDir, 4, levelEngine.files), [])
  mkdirSync(join(dataDir, 'shards', '2', 'damaged', '1'), { recursive: true })
  assert.deepEqual(await damagedFiles(dataDir, 4, levelEngine.files), ['shards/2/damaged/1'])
})
