/**
 * Runs random sequences on a queue whose webhook gives updates up, with an operator who replays and drops dead letters,
 * and with crashes that lose every write that has not begun. Each update is in exactly one place, pending or a dead
 * letter, unless it was removed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UpdateQueue } from '../../../../src/queue/update-queue.ts'
import { noRetention } from '../../../../src/queue/kept/left-update.ts'
import { WindowBudget } from '../../../../src/queue/window/window.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { Operation } from '../../../../src/shard/operations.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { ShardLife, TestCounters, whileTimePasses } from '../../../support/store/shard-life.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'

const id = 123_456

type Step =
  | { readonly kind: 'push' | 'addDeadLetters' | 'deliver'; readonly count: number }
  | { readonly kind: 'replay' | 'drop'; readonly place: number }
  | { readonly kind: 'pass' | 'crash' | 'unload' }

/** One random sequence. Each update's text contains a number that stays the same when the update is replayed. */
class Life {
  readonly #clock = new FakeClock()
  readonly #disk = new MemoryStore()
  /** Writes of a crashed process never finish. */
  #store = new FaultyStore(this.#disk)
  #shard = new ShardLife(this.#store, this.#clock)
  #queue!: UpdateQueue
  #named = 0
  /** Pushed and durable. */
  readonly #present = new Set<number>()
  /** Removed, but the removal may or may not have become durable. */
  readonly #uncertain = new Set<number>()

  async open(): Promise<void> {
    await this.#shard.shard.open()
    await this.#load()
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case 'push':
        return this.#push(step.count)
      case 'addDeadLetters':
      case 'deliver':
        return this.#giveUp(step)
      case 'replay':
      case 'drop':
        return this.#touchLetter(step)
      case 'pass':
        return this.#clock.advance(25)
      case 'unload':
        await this.#clock.advance(25)
        this.#queue.detach()
        this.#shard.shard.forget(id)
        return this.#load()
      case 'crash':
        return this.#crash()
    }
  }

  /** Checks that every update is where it should be, exactly once. */
  async check(): Promise<void> {
    const deadLetters = await this.#deadLetters()
    const pending = await this.#wait(this.#queue.pendingAfter(0, 1_000))
    const found = [...deadLetters, ...pending.map((update) => update.body())].map((bytes) =>
      nameIn(bytes),
    )
    assert.equal(new Set(found).size, found.length, `twice: ${found.join()}`)
    for (const name of found) {
      assert(this.#present.has(name) || this.#uncertain.has(name), `${name} was let go`)
    }
    for (const name of this.#present) assert(found.includes(name), `${name} is lost`)
    assert.equal(this.#queue.pendingCount, pending.length)
    assert.equal(await this.#wait(this.#queue.deadLetters.count()), deadLetters.length)
  }

  async #push(count: number): Promise<void> {
    const operations = Array.from({ length: count }, () => {
      this.#present.add(this.#named)
      return this.#pushed(`"message":{"n":${this.#named++}}`)
    })
    await this.#shard.shard.commit(operations, { waited: true })
  }

  #pushed(text: string | Buffer): Operation {
    const expiresAtS = this.#clock.nowMs() / 1000 + 86_400
    return this.#queue.push({
      typeNumber: 0,
      orderingKey: 'k',
      expiresAtS,
      text: Buffer.from(text),
    })
  }

  async #giveUp({ kind, count }: { readonly kind: string; readonly count: number }): Promise<void> {
    const updates = await this.#wait(this.#queue.pendingAfter(0, count))
    if (kind === 'addDeadLetters') {
      const why = { reason: 'refused', attempts: 1, lastError: 'no' } as const
      this.#queue.addDeadLetters(updates.map((update) => ({ ...why, update })))
    } else {
      this.#queue.remove(updates)
      for (const update of updates) this.#letGo(nameIn(update.body()))
    }
  }

  async #touchLetter({ kind, place }: { readonly kind: string; readonly place: number }) {
    const { deadLetters } = this.#queue
    const ids = await this.#wait(deadLetters.ids())
    const letterId = ids[place % Math.max(ids.length, 1)]
    if (letterId === undefined) return
    const deadLetter = await this.#wait(deadLetters.get(letterId))
    assert(deadLetter !== undefined)
    if (kind === 'drop') {
      this.#letGo(nameIn(deadLetter.text))
      // A crash may come before the removal is durable.
      deadLetters.remove(letterId).catch(() => undefined)
    } else {
      const operations = [this.#pushed(deadLetter.text), deadLetters.take([letterId])]
      this.#shard.shard.commit(operations, { waited: true }).catch(() => undefined)
    }
  }

  #letGo(name: number): void {
    this.#present.delete(name)
    this.#uncertain.add(name)
  }

  async #crash(): Promise<void> {
    this.#store.holdWrites()
    this.#disk.loseUnsynced()
    this.#store = new FaultyStore(this.#disk)
    this.#shard = new ShardLife(this.#store, this.#clock)
    this.#queue.detach()
    await this.open()
  }

  async #load(): Promise<void> {
    const { shard } = this.#shard
    const [stored] = await shard.load([id])
    const queue = new UpdateQueue(
      {
        id,
        shard,
        clock: this.#clock,
        random: () => 0.5,
        limits: { updateBytesMax: 1_000, pendingUpdatesMax: 1_000, pendingBytesMax: 1_000_000 },
        budget: new WindowBudget(1_000),
        counters: new TestCounters(),
        retention: () => noRetention,
        isWebhookActive: () => true,
        lostByExpiry: () => undefined,
        levels: { note: () => undefined },
        deadLettersAdded: () => undefined,
      },
      stored!.state,
    )
    this.#queue = queue
    this.#shard.onCommitted = (operations) => {
      for (const operation of operations) if (operation.kind === 'push') queue.committed(operation)
    }
  }

  async #deadLetters(): Promise<Buffer[]> {
    const { deadLetters, next } = await this.#wait(
      this.#queue.deadLetters.read({ from: 0, to: 2 ** 32 - 1, limit: 100 }),
    )
    assert(deadLetters.length < 100 && next > 0)
    return deadLetters.map(({ text }) => text)
  }

  #wait<T>(given: T | Promise<T>): Promise<T> {
    return whileTimePasses(this.#clock, Promise.resolve(given))
  }
}

function nameIn(bytes: Buffer): number {
  return Number(/"n":(\d+)/.exec(bytes.toString())?.[1])
}

test('whatever happens and whenever it crashes, an update is either pending or a dead letter', async () => {
  const count = fc.integer({ min: 1, max: 4 })
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({
      kind: fc.constantFrom('push', 'addDeadLetters', 'addDeadLetters', 'deliver'),
      count,
    }),
    fc.record({ kind: fc.constantFrom('replay', 'replay', 'drop'), place: fc.nat(9) }),
    fc.record({ kind: fc.constantFrom('pass', 'crash', 'unload') }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const life = new Life()
      await life.open()
      for (const each of steps) await life.run(each)
      await life.run({ kind: 'unload' })
      await life.check()
    }),
    { numRuns: drawnRuns(400) },
  )
})
