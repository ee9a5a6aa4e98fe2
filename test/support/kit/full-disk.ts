/**
 * Runs in a separate mount namespace with a small file system at argv[2]. It fills the file system through a store,
 * makes room, reopens the store, and reports the results as JSON on standard output.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../src/kit/clock.ts'
import { DiskSpace, probeDisk } from '../../../src/store/disk-space.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import { checkLogs } from '../../../src/store/level/log-check.ts'
import type { StoreEntry } from '../../../src/store/store.ts'

const mount = process.argv[2] ?? ''
const shard = join(mount, 'shard')
const ballast = join(mount, 'ballast')
const space = new DiskSpace(mount, 4 << 20, systemClock)

// Pseudo-random, so that Snappy cannot compress it.
let state = 1
const noise = Buffer.from(
  Array.from({ length: 1_000 }, () => (state = (state * 16_807) % 2_147_483_647) & 255),
)

const store = new LevelStore({ directory: shard, clock: systemClock, lockWaitMs: 0 })
await store.open()
await space.start()
const wasLowAtFirst = space.isLow()
writeFileSync(ballast, Buffer.alloc(12 << 20, 'x'))

let acknowledged = 0
let failure: unknown
for (; failure === undefined && acknowledged < 100_000; acknowledged++) {
  try {
    await store.write([{ type: 'put', key: keyOf(acknowledged), value: noise }], { sync: true })
  } catch (error) {
    failure = error
    break
  }
}
const readableWhilePoisoned = (await readAll()).length
const probeWhileFull = await probeDisk(mount)
await space.start()
const isLowWhileFull = space.isLow()

rmSync(ballast)
const probeAfterwards = await probeDisk(mount)
await store.close()
const check = await checkLogs(shard)
await store.open()
const found = await readAll()
await store.write([{ type: 'put', key: keyOf(acknowledged), value: noise }], { sync: true })
await store.close()
await store.open()
const foundAfterwards = (await readAll()).length
await store.close()
space.close()

process.stdout.write(
  JSON.stringify({
    wasLowAtFirst,
    failure: failure instanceof Error ? failure.message : '',
    acknowledged,
    readableWhilePoisoned,
    probeWhileFull,
    isLowWhileFull,
    probeAfterwards,
    damages: check.damages.length,
    isEveryAcknowledgedThere: found.length >= acknowledged,
    foundAfterwards,
  }),
)

function keyOf(number: number): Buffer {
  return Buffer.from(String(number).padStart(8, '0'))
}

function readAll(): Promise<readonly StoreEntry[]> {
  return store.range({
    gte: Buffer.from('0'),
    lt: Buffer.from('9'),
    limit: 1_000_000,
    keysOnly: true,
  })
}
