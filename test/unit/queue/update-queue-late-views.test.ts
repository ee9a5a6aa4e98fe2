/** A queue whose store is far away: reads see a state that is newer than their call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { LateStore } from '../../support/store/late-store.ts'
import { QueueLife } from '../../support/queue/queue-life.ts'

const pushes = 40
const turnsMax = 6

test('updates are read once and in order while others are pushed and confirmed, however late the store sees its reads', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.infiniteStream(fc.integer({ min: 0, max: turnsMax })),
      fc.integer({ min: 1, max: 1_000 }),
      async (stream, windowBytes) => {
        const draw = (): number => stream.next().value
        const life = await QueueLife.open({
          store: new LateStore(new MemoryStore(), draw),
          windowBytes,
        })
        const pushed: number[] = []
        const left = { pushes }
        const produce = async (): Promise<void> => {
          for (; left.pushes > 0; left.pushes--) {
            pushed.push(...(await life.push(1 + draw())))
            if (draw() === 0) await settle()
          }
        }
        const received: number[] = []
        const consume = async (): Promise<void> => {
          while (left.pushes > 0 || life.queue.pendingCount > 0) {
            const ids = await life.pageIds(1 + draw() * 3)
            const from = received.length
            const last = ids.at(-1)
            if (last === undefined || draw() === 0) {
              await settle()
              continue
            }
            received.push(...ids)
            // A poll may come again before its updates are confirmed.
            if (draw() === 1) received.length = from
            else await life.queue.advance(last + 1, 'confirm')
          }
        }
        const both = Promise.all([produce(), consume()])
        await life.wait(both)
        assert.deepEqual(received, pushed)
      },
    ),
    { numRuns: drawnRuns(40) },
  )
})
