import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BotFinder, findRetryMs, foundPerReadMax } from '../../../src/bots/bot-finder.ts'
import { Modules } from '../../../src/kit/modules.ts'
import type { ShardHooks } from '../../../src/shard/hooks.ts'
import type { RangeOptions, StoreEntry } from '../../../src/store/store.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'

const botsCount = foundPerReadMax + 1

/** Counts what is read of it, and fails while it is broken. */
class CountedStore extends MemoryStore {
  reads = 0
  isBroken = false
  /** What happens during the next read. */
  meanwhile: (() => void) | undefined

  override async range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    this.reads += 1
    const entries = await super.range(options)
    this.meanwhile?.()
    this.meanwhile = undefined
    if (this.isBroken) throw new Error('EIO')
    return entries
  }
}

async function open(...hooks: ShardHooks[]) {
  const store = new CountedStore()
  const bots = await BotsLife.open({ store: () => store })
  const shard = bots.registry.bots.shardAt(0)
  for (let nth = 0; nth < botsCount; nth++) await bots.register(100 + nth)
  const modules = new Modules<ShardHooks>()
  modules.list.push(...hooks)
  const finder = new BotFinder(bots.clock, modules)
  modules.list.push(finder)
  store.reads = 0
  return { bots, store, shard, finder, modules }
}

/** What a module is told. */
class Told implements ShardHooks {
  readonly told: (string | number)[] = []
  /** How often what follows the bots cannot be read. */
  failures = 0

  served(): void {
    this.told.push('served')
  }

  found(_shard: object, bots: readonly unknown[]): void {
    this.told.push(bots.length)
  }

  async foundAll(): Promise<void> {
    this.told.push('all')
    if (this.failures-- > 0) throw new Error('EIO')
  }

  unfound(): void {
    this.told.push('unfound')
  }
}

const whole = [foundPerReadMax, 1, 'all']

test('the bots of a shard are found after it is served, in pages, and read once for all modules', async () => {
  const [one, other] = [new Told(), new Told()]
  const { bots, store, shard, modules } = await open(one, other)
  modules.each('served', shard)
  await bots.clock.advance(0)
  assert.deepEqual(one.told, ['served', ...whole])
  assert.deepEqual(other.told, one.told)
  const alone = await open(new Told())
  alone.modules.each('served', alone.shard)
  await alone.bots.clock.advance(0)
  assert.equal(store.reads, alone.store.reads)
})

test('no bot is read if no module wants to find any', async () => {
  const { bots, store, shard, modules } = await open({ left: () => undefined })
  modules.each('served', shard)
  await bots.clock.advance(0)
  assert.equal(store.reads, 0)
})

test('bots are found again, from the first, after a read of them or of what follows them has failed', async () => {
  const module = new Told()
  const { bots, store, shard, modules } = await open(module)
  store.isBroken = true
  modules.each('served', shard)
  await bots.clock.advance(0)
  assert.deepEqual(module.told, ['served', 'unfound'])
  store.isBroken = false
  module.failures = 1
  await bots.clock.advance(findRetryMs)
  assert.deepEqual(module.told.splice(0), ['served', 'unfound', ...whole, 'unfound'])
  await bots.clock.advance(findRetryMs)
  assert.deepEqual(module.told, whole)
})

test('nothing is found of a shard that has left, or once the worker gives its shards up', async () => {
  for (const end of ['left', 'stop'] as const) {
    const module = new Told()
    const { bots, shard, modules, finder } = await open(module)
    modules.each('served', shard)
    finder[end](shard)
    await bots.clock.advance(findRetryMs)
    assert.deepEqual(module.told, ['served'], end)
  }
})

test('nothing of a page is told, nor that it cannot be read, if the shard has left meanwhile', async () => {
  for (const isBroken of [false, true]) {
    const module = new Told()
    const { bots, store, shard, modules, finder } = await open(module)
    store.isBroken = isBroken
    store.meanwhile = () => finder.left(shard)
    modules.each('served', shard)
    await bots.clock.advance(findRetryMs)
    assert.deepEqual(module.told, ['served'])
  }
})

test('a shard that is served anew while its bots are read is read from the first bot, once', async () => {
  const module = new Told()
  const { bots, store, shard, modules } = await open(module)
  store.meanwhile = () => modules.each('served', shard)
  modules.each('served', shard)
  await bots.clock.advance(findRetryMs)
  assert.deepEqual(module.told, ['served', 'served', ...whole])
})
