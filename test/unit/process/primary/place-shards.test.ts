import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  PlaceShards,
  type PlaceShardsOptions,
} from '../../../../src/process/primary/place-shards.ts'
import { lastingAssignment } from '../../../../src/process/shard-assignment.ts'
import { ShardMap } from '../../../../src/process/shard-map.ts'
import type { WorkerChild } from '../../../../src/process/primary/worker-child.ts'
import { settle } from '../../../support/kit/fake-clock.ts'

const boot = 'boot'

type Call = (name: string, args: readonly [{ readonly shard: number }]) => Promise<void>

interface PlaceOptions extends Partial<Pick<PlaceShardsOptions, 'assignment'>> {
  /** Makes the calls to the worker of the place. */
  readonly call: Call
  readonly onServing?: (shard: number) => void
}

function placeWith({
  call,
  assignment = lastingAssignment(4),
  onServing = () => undefined,
}: PlaceOptions) {
  const child = { generation: 1, control: { call } } as unknown as WorkerChild
  const shards = new PlaceShards({
    worker: 0,
    map: new ShardMap({ shards: 4, workers: 1 }),
    shardTable: {
      assign: () => undefined,
      isServed: () => false,
      countHang: () => undefined,
      noteWorker: () => undefined,
      release: () => undefined,
      markServing: onServing,
    },
    assignment,
    serving: () => child,
    processes: () => [child],
  })
  return { child, shards }
}

/** A place with a worker whose calls end when the test says so. */
function setUp() {
  const calls = new Map<number, (error?: Error) => void>()
  const served: number[] = []
  const call: Call = (_name, [{ shard }]) =>
    new Promise<void>((resolve, reject) => {
      calls.set(shard, (error) => (error === undefined ? resolve() : reject(error)))
    })
  const { shards } = placeWith({ call, onServing: (shard) => void served.push(shard) })
  return { shards, calls, served }
}

test('shards are opened at the same time, and one that fails holds up no other', async () => {
  const { shards, calls, served } = setUp()
  const first = shards.open({ shard: 0, boot })
  const second = shards.open({ shard: 1, boot })
  await settle()
  assert.deepEqual([...calls.keys()], [0, 1])
  calls.get(0)?.(new Error('the database is away'))
  calls.get(1)?.()
  await assert.rejects(first, /the database is away/)
  await second
  assert.deepEqual(served, [1])
})

test('shards pass to another process when none is being opened, and none is opened meanwhile', async () => {
  const { shards, calls } = setUp()
  let pass: (() => void) | undefined
  let hasBegun = false
  const before = shards.open({ shard: 0, boot })
  const passing = shards.exclusively(() => {
    hasBegun = true
    return new Promise((resolve) => (pass = resolve))
  })
  const after = shards.open({ shard: 1, boot })
  await settle()
  assert(!hasBegun)
  calls.get(0)?.()
  await before
  await settle()
  assert(hasBegun)
  assert.deepEqual([...calls.keys()], [0])
  pass?.()
  await passing
  await settle()
  calls.get(1)?.()
  await after
})

test('a process that serves learns the routes that changed while it started', () => {
  const told: unknown[] = []
  const routes = { boots: ['own'], nodes: [], owners: [], servers: [] }
  const { child, shards } = placeWith({
    call: async (name, args) => void told.push(name, ...args),
    assignment: { openings: () => [], has: () => false, routes: () => routes },
  })
  shards.serves(child, [])
  assert.deepEqual(told, ['setRoutes', routes])
})
