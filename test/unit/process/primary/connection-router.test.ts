import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ConnectionRouter,
  WorkersInTurn,
} from '../../../../src/process/primary/connection-router.ts'
import { HandOff, type WaitingConnection } from '../../../../src/process/primary/hand-off.ts'
import { botOf, map } from '../../../support/server/bot-of.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

/** Longer than a connection waits for its worker. */
const waitedMs = 5_000

function connection(refused: string[] = []): WaitingConnection {
  return {
    listener: 'private',
    clientAddress: '192.0.2.1',
    bytes: Buffer.from('POST'),
    handle: () => ({ fd: 9, readStop: () => 0, readStart: () => 0 }),
    handedOver: () => undefined,
    refuse: ({ code }) => void refused.push(code),
  }
}

/** Two workers of four shards each. Those that serve take what they are sent. */
function setUp(serving: readonly number[], has: (shard: number) => boolean = () => true) {
  const clock = new FakeClock()
  const sent: number[] = []
  const handOffs = [0, 1].map((worker) => {
    const handOff = new HandOff(clock)
    const channel = {
      send(id: number) {
        sent.push(worker)
        void Promise.resolve().then(() => handOff.acknowledge(channel, { id, lostIds: [] }))
        return true
      },
      withdraw: () => [],
    }
    if (serving.includes(worker)) handOff.attach(channel)
    return handOff
  })
  return {
    clock,
    sent,
    handOffs,
    router: new ConnectionRouter(map, { has }, handOffs),
  }
}

test('a bot and a shard lead to the worker that has the shard', () => {
  const { router, sent } = setUp([0, 1])
  for (const worker of [1, 1, 0, 0]) router.route({ botId: botOf(worker) }, connection())
  for (const shard of [7, 4, 3, 0]) router.route({ shard }, connection())
  assert.deepEqual(sent, [1, 1, 0, 0, 1, 1, 0, 0])
})

test('a shard that does not exist, or that another node has, goes to the workers in turn', () => {
  const { router, sent } = setUp([0, 1], (shard) => shard !== 7)
  for (const shard of [8, 255, 999, 7]) router.route({ shard }, connection())
  router.route(undefined, connection())
  router.route(undefined, connection())
  assert.deepEqual(sent, [0, 1, 0, 1, 0, 1])
})

test('a stream with a shard that does not exist waits while no worker serves, as one without', () => {
  const { router, sent, handOffs } = setUp([])
  const refused: string[] = []
  router.route({ shard: 999 }, connection(refused))
  router.route(undefined, connection(refused))
  assert.deepEqual(refused, [])
  for (const [worker, handOff] of handOffs.entries()) {
    handOff.attach({ send: () => sent.push(worker) > 0, withdraw: () => [] })
  }
  assert.deepEqual(sent, [0, 1])
})

test('a stream whose worker does not come is served by another one, and a request for a bot is refused', async () => {
  const { router, sent, clock } = setUp([0])
  const [ofShard, ofBot]: [string[], string[]] = [[], []]
  router.route({ shard: 7 }, connection(ofShard))
  router.route({ botId: botOf(1) }, connection(ofBot))
  assert.deepEqual(sent, [])
  await clock.advance(waitedMs)
  assert.deepEqual([sent, ofShard, ofBot], [[0], [], ['STORE_UNAVAILABLE']])
})

test('a stream waits for its worker while that one is replaced', async () => {
  const { router, sent, handOffs } = setUp([0])
  router.route({ shard: 7 }, connection())
  handOffs[1]?.attach({ send: () => sent.push(1) > 0, withdraw: () => [] })
  assert.deepEqual(sent, [1])
})

test('at the end of the server a stream with a shard is refused like all others', () => {
  const { router, handOffs } = setUp([])
  const refused: string[] = []
  router.route({ shard: 7 }, connection(refused))
  for (const handOff of handOffs) handOff.refuseAll()
  assert.deepEqual(refused, ['STORE_UNAVAILABLE'])
})

const free = { isAttached: true, waiting: 0 }
const down = { isAttached: false, waiting: 0 }

test('workers take turns, and those that are down are skipped', () => {
  const turns = new WorkersInTurn([free, down, free])
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [0, 2, 0])
})

test('a worker that accepts nothing gets no more connections while another one accepts them', () => {
  const stuck = { isAttached: true, waiting: 0 }
  const turns = new WorkersInTurn([stuck, free])
  assert.equal(turns.next(), 0)
  stuck.waiting = 1
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [1, 1, 1])
  stuck.waiting = 0
  assert.equal(turns.next(), 0)
})

test('if all workers are down, they still take turns', () => {
  const turns = new WorkersInTurn([down, down])
  assert.deepEqual([turns.next(), turns.next(), turns.next()], [0, 1, 0])
})
