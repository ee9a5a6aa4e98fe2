import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hash128 } from '../../../../src/shard/idempotency/key-hashes.ts'
import { keyPlace } from '../../../../src/shard/idempotency/idempotency-key-filter.ts'
import {
  keyFilterPauseMs,
  IdempotencyKeyFilters,
  keyFilterSliceKeys,
} from '../../../../src/shard/idempotency/idempotency-key-filters.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { RangeOptions, StoreEntry } from '../../../../src/store/store.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'

const queue = queueIdOf(123, false)
const firstDay = 100

/** Filters over a store, whose reads a test counts, fails or holds. */
class World {
  readonly clock = new FakeClock()
  readonly store = new MemoryStore()
  readonly ranges: RangeOptions[] = []
  readonly filters = new IdempotencyKeyFilters(this.clock, (options) => this.#range(options))
  isFailing = false
  readonly held: (() => void)[] = []
  isHolding = false

  async write(halfDay: number, keys: readonly string[]): Promise<void> {
    const value = Buffer.alloc(1)
    const puts = keys.map((name) => ({
      type: 'put' as const,
      key: kinds.idempotencyKey.key(halfDay, queue, hash128(name)),
      value,
    }))
    await this.store.write(puts, { sync: true })
  }

  isNew(name: string): boolean {
    return this.filters.isNew(keyPlace(queue, hash128(name)))
  }

  mayHave(halfDay: number, name: string): boolean {
    return this.filters.mayHave(halfDay, keyPlace(queue, hash128(name)))
  }

  async #range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    this.ranges.push(options)
    const entries = await this.store.range(options)
    if (this.isHolding) await new Promise<void>((resolve) => this.held.push(resolve))
    if (this.isFailing) throw new Error('EIO')
    return entries
  }

  release(): void {
    for (const release of this.held.splice(0)) release()
  }
}

async function openWorld(): Promise<World> {
  const world = new World()
  await world.store.open()
  return world
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, nth) => `key ${nth}`)
}

test('until all stored keys of a half-day were read, any key may be in it', async () => {
  const world = await openWorld()
  await world.write(firstDay, names(keyFilterSliceKeys + 1))
  assert.equal(world.isNew('other'), false)
  await world.filters.list(firstDay)
  assert.equal(world.isNew('other'), false)
  await settle()
  assert.equal(world.isNew('other'), false)
  await world.clock.advance(keyFilterPauseMs)
  assert.equal(world.isNew('other'), true)
  assert.equal(world.mayHave(firstDay, 'other'), false)
  for (const name of names(keyFilterSliceKeys + 1)) assert.equal(world.isNew(name), false)
})

test('stored keys are read in slices with a pause after each', async () => {
  const world = await openWorld()
  await world.write(firstDay, names(2 * keyFilterSliceKeys))
  await world.filters.list(firstDay)
  world.ranges.length = 0
  await settle()
  assert.deepEqual(
    world.ranges.map(({ limit }) => limit),
    [],
    'the first slice was requested by the listing',
  )
  await world.clock.advance(keyFilterPauseMs - 1)
  assert.equal(world.ranges.length, 0)
  await world.clock.advance(1)
  assert.deepEqual(
    world.ranges.map(({ limit }) => limit),
    [keyFilterSliceKeys],
  )
  await world.clock.advance(keyFilterPauseMs)
  assert.equal(world.ranges.length, 2)
  await world.clock.advance(10 * keyFilterPauseMs)
  assert.equal(world.ranges.length, 2)
})

test('a read that failed is repeated by the next call, from where it was', async () => {
  const world = await openWorld()
  await world.write(firstDay, names(keyFilterSliceKeys + 1))
  await world.filters.list(firstDay)
  await settle()
  world.isFailing = true
  await world.clock.advance(keyFilterPauseMs)
  world.isFailing = false
  await world.clock.advance(1_000)
  assert.equal(world.isNew('other'), false)
  world.ranges.length = 0
  world.filters.build()
  world.filters.build()
  await settle()
  assert.equal(world.isNew('other'), true)
  assert.equal(world.ranges.length, 1)
})

test('a listing during which the shard was reset is not used', async () => {
  const world = await openWorld()
  world.isHolding = true
  const listed = world.filters.list(firstDay)
  await settle()
  await world.write(firstDay, ['a'])
  world.filters.reset()
  world.release()
  await listed
  assert.equal(world.isNew('a'), false)
  assert.deepEqual(world.filters.halfDays, [])
})

test('a reset ends the reading of stored keys', async () => {
  const world = await openWorld()
  await world.write(firstDay, names(3 * keyFilterSliceKeys))
  await world.filters.list(firstDay)
  await settle()
  world.filters.reset()
  world.ranges.length = 0
  await world.clock.advance(100 * keyFilterPauseMs)
  assert.equal(world.ranges.length, 0)
})

test('a half-day whose keys were deleted takes no memory', async () => {
  const world = await openWorld()
  await world.filters.list(firstDay)
  const place = keyPlace(queue, hash128('a'))
  world.filters.add(firstDay, place)
  const bytes = world.filters.bytes
  assert.ok(bytes > 0)
  world.filters.add(firstDay + 1, place)
  assert.equal(world.filters.bytes, 2 * bytes)
  world.filters.removeBefore(firstDay + 1)
  assert.deepEqual([world.filters.bytes, world.filters.halfDays], [bytes, [firstDay + 1]])
})

/** What happens to the filters of a shard, in any order. */
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('claim' as const),
      key: fc.nat(60),
      day: fc.nat(2),
      isWritten: fc.boolean(),
    }),
  },
  fc.record({ kind: fc.constant('reset' as const) }),
  fc.record({ kind: fc.constant('list' as const) }),
  fc.record({ kind: fc.constant('fail' as const) }),
  fc.record({ kind: fc.constant('build' as const) }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('settle' as const) }) },
  fc.record({ kind: fc.constant('pause' as const) }),
)

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** The stored keys, with the half-days of each. */
class Model {
  readonly #stored = new Map<string, Set<number>>()
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async put(name: string, day: number): Promise<void> {
    this.#stored.set(name, (this.#stored.get(name) ?? new Set()).add(day))
    await this.#world.write(day, [name])
  }

  check(): void {
    const { filters } = this.#world
    for (const [name, days] of this.#stored) {
      assert.equal(this.#world.isNew(name), false, name)
      if (filters.halfDays.length === 0) continue
      for (const day of days) assert.ok(this.#world.mayHave(day, name), `${name} ${day}`)
    }
  }
}

async function apply(each: Step, world: World, model: Model): Promise<void> {
  const { filters, clock } = world
  switch (each.kind) {
    case 'claim': {
      if (filters.halfDays.length === 0) return
      const name = `claimed ${each.key}`
      filters.add(firstDay + each.day, keyPlace(queue, hash128(name)))
      if (each.isWritten) await model.put(name, firstDay + each.day)
      return
    }
    case 'fail':
      world.isFailing = true
      await clock.advance(keyFilterPauseMs)
      world.isFailing = false
      return
    case 'reset':
      filters.reset()
      return
    case 'list':
      await filters.list(firstDay)
      return
    case 'build':
      filters.build()
      return
    case 'settle':
      await settle()
      return
    case 'pause':
      await clock.advance(keyFilterPauseMs)
  }
}

test('no stored key is ever taken for a new one, whatever happens while the filters are built', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const world = await openWorld()
      const model = new Model(world)
      // More than a slice, so that a build needs several steps.
      await world.write(firstDay, names(keyFilterSliceKeys + 5))
      await model.put('key 0', firstDay)
      await model.put(`key ${keyFilterSliceKeys + 4}`, firstDay)
      await world.filters.list(firstDay)
      for (const each of steps) {
        await apply(each, world, model)
        model.check()
      }
      await world.filters.list(firstDay)
      world.filters.build()
      await settle()
      await world.clock.advance(20 * keyFilterPauseMs)
      assert.ok(world.isNew('never claimed'))
    }),
    { numRuns: drawnRuns(60) },
  )
})
