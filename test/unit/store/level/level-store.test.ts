import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../../../src/kit/clock.ts'
import { LevelStore } from '../../../../src/store/level/level-store.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { until } from '../../../support/kit/until.ts'

const writer = fileURLToPath(new URL('../../../support/store/store-writer.js', import.meta.url))
let directory: string
let alive: NodeJS.Timeout
beforeEach(() => {
  // The clock's timers do not keep the process alive, and nothing else is pending while `open` waits for its next
  // try.
  alive = setInterval(() => undefined, 60_000)
  directory = mkdtempSync(join(tmpdir(), 'pb-level-'))
})
afterEach(() => {
  clearInterval(alive)
  rmSync(directory, { recursive: true })
})

/** Advances the clock until the promise settles, because opening does real work on real threads. */
async function advanceUntilSettled(clock: FakeClock, promise: Promise<unknown>): Promise<void> {
  const state = { isSettled: false }
  const settle = (): void => {
    state.isSettled = true
  }
  promise.then(settle, settle)
  for (let step = 0; !state.isSettled && step < 100_000; step++) await clock.advance(1)
}

test('open gives up on a locked database at its deadline, and names the directory', async () => {
  const holder = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await holder.open()
  const clock = new FakeClock()
  const store = new LevelStore({ directory, clock, lockWaitMs: 1_000 })
  const startMs = clock.monotonicMs()
  const opening = store.open()
  await advanceUntilSettled(clock, opening)
  await assert.rejects(opening, (error: Error) => {
    assert.ok(error.message.includes(directory))
    assert.match(error.message, /open in another process/)
    assert.ok(error.cause instanceof Error)
    return true
  })
  assert.ok(clock.monotonicMs() - startMs >= 1_000)
  assert.equal(clock.timers, 0)
  await holder.close()
})

test('open succeeds when the holder of the lock in this process has closed', async () => {
  const holder = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await holder.open()
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 10_000 })
  const opening = store.open()
  await holder.close()
  await opening
  await store.write([{ type: 'put', key: Buffer.from('a'), value: Buffer.from('1') }], {
    sync: true,
  })
  await store.close()
})

test('open waits for another process that holds the lock to die', async () => {
  const child = spawn(process.execPath, [writer, directory, '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  await once(child.stdout, 'data')
  child.stdout.resume()
  const impatient = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await assert.rejects(impatient.open(), /open in another process/)
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 10_000 })
  const opening = store.open()
  child.kill('SIGKILL')
  await Promise.all([opening, closed])
  await store.close()
})

test('a directory that cannot be a database is refused immediately', async () => {
  const clock = new FakeClock()
  const store = new LevelStore({
    directory: join(directory, 'no', 'parent'),
    clock,
    lockWaitMs: 1_000,
  })
  await assert.rejects(store.open(), /cannot open the database in .*parent: .*No such file/)
  assert.equal(clock.timers, 0)
})

test('many simultaneous writes of any size keep their own contents', async () => {
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
  const sizes = [1, 3_000, 20_000, 2, 500, 1, 70_000]
  await Promise.all(
    sizes.map((size, at) =>
      store.write(
        Array.from({ length: Math.min(size, 500) }, (_, index) => ({
          type: 'put' as const,
          key: Buffer.from(`${at}/${index}`),
          value: Buffer.alloc(Math.ceil(size / 2), `${at}`),
        })),
        { sync: at % 2 === 0 },
      ),
    ),
  )
  for (const [at, size] of sizes.entries()) {
    const entries = await store.range({
      gte: Buffer.from(`${at}/`),
      lt: Buffer.from(`${at}0`),
      limit: 100_000,
    })
    assert.equal(entries.length, Math.min(size, 500))
    assert.ok(
      entries.every((entry) => entry.value.equals(Buffer.alloc(Math.ceil(size / 2), `${at}`))),
    )
  }
  await store.close()
})

test('a write writes its own operations to disk and none of another write', async () => {
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
  const write = (at: number): Promise<void> =>
    store.write([{ type: 'put', key: Buffer.from(`${at}`), value: Buffer.alloc(10_000, 'x') }], {
      sync: false,
    })
  for (let at = 0; at < 40; at++) await write(at)
  await Promise.all(Array.from({ length: 40 }, (_, at) => write(at)))
  const logBytes = readdirSync(directory)
    .filter((name) => name.endsWith('.log'))
    .reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
  assert.ok(logBytes > 800_000 && logBytes < 810_000, `${logBytes}`)
  await store.close()
})

test('what was deleted takes no room after it was freed, and what is left can be read', async () => {
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  await store.open()
  const keys = Array.from({ length: 100 }, (_, at) =>
    Buffer.from(`u${String(at).padStart(3, '0')}`),
  )
  for (const key of keys) {
    await store.write([{ type: 'put', key, value: randomBytes(100_000) }], { sync: false })
  }
  const [kept, ...deleted] = keys
  assert(kept !== undefined)
  await store.write(
    deleted.map((key) => ({ type: 'del', key })),
    { sync: false },
  )
  const bytes = (): number =>
    readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
  assert.ok(bytes() > 5_000_000, `${bytes()}`)
  await store.freeRoom({ gte: Buffer.from('u'), lt: Buffer.from('v') })
  // LevelDB deletes the files of a compaction a moment later.
  await until(() => bytes() < 1_000_000)
  const [value] = await store.getMany([kept])
  assert.equal(value?.length, 100_000)
  await store.close()
})
