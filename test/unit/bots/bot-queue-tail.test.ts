/** What a queue tells those who watch it, and when it ends their tails. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { QueueTail } from '../../../src/bots/queue-tails.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'

const minutesMs = 60_000

class SeenTail implements QueueTail {
  readonly seen: string[] = []

  pushed({ updateId }: Parameters<QueueTail['pushed']>[0]): void {
    this.seen.push(`pushed ${updateId}`)
  }

  advanced(kind: string, { removedCount, floor }: Parameters<QueueTail['advanced']>[1]): void {
    this.seen.push(`${kind} ${removedCount} below ${floor}`)
  }

  end(): void {
    this.seen.push('end')
  }
}

test('a tail sees what is pushed and confirmed while it watches, and nothing else', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  const tail = new SeenTail()
  await bots.push(bots.request(100))
  queue.watch(tail)
  const [id] = await bots.push(bots.request(100))
  await queue.updates.advance(queue.updates.nextId, 'confirm')
  queue.unwatch(tail)
  await bots.push(bots.request(100))
  assert.deepEqual(tail.seen, [`pushed ${id}`, `confirm 2 below ${Number(id) + 1}`])
})

test('a bot that is watched stays in memory, and leaves it afterward', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  const tail = new SeenTail()
  queue.watch(tail)
  await bots.clock.advance(10 * minutesMs)
  const [id] = await bots.push(bots.request(100))
  assert.deepEqual(tail.seen, [`pushed ${id}`])
  queue.unwatch(tail)
  await bots.clock.advance(10 * minutesMs)
  assert.equal(bots.registry.bots.loaded(100), undefined)
})

test('tails end when their worker gives up its shards, and a later one ends at once', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  const [early, late] = [new SeenTail(), new SeenTail()]
  queue.watch(early)
  await bots.wait(bots.registry.bots.drain(1_000))
  queue.watch(late)
  assert.deepEqual(early.seen, ['end'])
  assert.deepEqual(late.seen, ['end'])
})

test('tails end when their bot is removed or its shard is read anew', async () => {
  const bots = await BotsLife.open()
  const tails = [new SeenTail(), new SeenTail()]
  for (const [nth, tail] of tails.entries()) {
    const queue = await bots.queueOf(await bots.register(100 + nth))
    queue.watch(tail)
  }
  await bots.wait(bots.registry.remove(100))
  await bots.resetShard(bots.lives[0]!.shard)
  assert.deepEqual(
    tails.map(({ seen }) => seen.at(-1)),
    ['end', 'end'],
  )
})
