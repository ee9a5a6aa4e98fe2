import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/kit/clock.ts'
import { LevelStore } from '../../src/store/level/level-store.ts'
import { checkLogs } from '../../src/store/level/log-check.ts'

const writer = fileURLToPath(new URL('../support/store/store-writer.js', import.meta.url))

/**
 * Runs the writer until it has reported `batches`, kills it, and returns the last batch that it reported as durable.
 */
async function writeUntilKilled(
  directory: string,
  first: number,
  batches: number,
): Promise<number> {
  const child = spawn(process.execPath, [writer, directory, `${first}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let last = -1
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line)
    if (last === first + batches) child.kill('SIGKILL')
  }
  const [, signal] = await closed
  assert.equal(signal, 'SIGKILL')
  return last
}

test('every batch that was acknowledged before kill -9 is there afterwards and is whole', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'pb-kill-'))
  const shard = join(directory, 'shard')
  let next = 0
  for (const batches of [1, 37, 900]) {
    const last = await writeUntilKilled(shard, next, batches)
    const check = await checkLogs(shard)
    assert.deepEqual([check.damages, check.salvaged], [[], []])
    const store = new LevelStore({ directory: shard, clock: systemClock, lockWaitMs: 5_000 })
    await store.open()
    const entries = await store.range({
      gte: Buffer.from('0'),
      lt: Buffer.from('9'),
      limit: 1_000_000,
    })
    await store.close()
    assert.equal(entries.length % 20, 0)
    const found = entries.length / 20
    assert.ok(found > last, `${last} was acknowledged and ${found} batches were found`)
    for (const [at, { key, value }] of entries.entries()) {
      const batch = Math.floor(at / 20)
      assert.equal(String(key).startsWith(String(batch).padStart(8, '0')), true)
      assert.deepEqual(value, Buffer.alloc(300, `${batch}.`))
    }
    next = found
  }
  rmSync(directory, { recursive: true })
})
