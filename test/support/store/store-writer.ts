/**
 * A process that writes synced batches to the database in argv[2] until it is killed. It prints the number of each
 * batch that the store reports as durable, one per line.
 */
import { systemClock } from '../../../src/kit/clock.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import type { StoreOperation } from '../../../src/store/store.ts'

const batchOperations = 20
const store = new LevelStore({
  directory: process.argv[2] ?? '',
  clock: systemClock,
  lockWaitMs: 0,
})
await store.open()
const first = Number(process.argv[3])
// Bounded to about a minute, in case the process is not killed.
for (let batch = first; batch < first + 100_000; batch++) {
  const operations: StoreOperation[] = Array.from({ length: batchOperations }, (_, at) => ({
    type: 'put',
    key: Buffer.from(`${String(batch).padStart(8, '0')}/${String(at).padStart(2, '0')}`),
    value: Buffer.alloc(300, `${batch}.`),
  }))
  await store.write(operations, { sync: true })
  process.stdout.write(`${batch}\n`)
}
