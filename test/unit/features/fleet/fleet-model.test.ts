/** Compares the fleet of a shard with a naive model, after any history, with reads and writes that take any time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Modules } from '../../../../src/kit/modules.ts'
import { silentLog } from '../../../support/kit/silent-log.ts'
import { BotFinder } from '../../../../src/bots/bot-finder.ts'
import { Fleet } from '../../../../src/features/fleet/fleet.ts'
import { fleetHooks } from '../../../../src/features/fleet/module.ts'
import type { WorkerModule } from '../../../../src/worker/module.ts'
import { nextTurn } from '../../../../src/kit/clock.ts'
import { unreachable } from '../../../../src/kit/errors.ts'
import {
  botIdOf,
  isTestQueue,
  type QueueId,
  queueIdOf,
} from '../../../../src/shard/records/record-keys.ts'
import type { Operation } from '../../../../src/shard/operations.ts'
import type { StoredDeadLetter } from '../../../../src/shard/records/stored-records.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { AttemptLogs } from '../../../../src/delivery/attempts/attempt-logs.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { fleetSums } from '../../../support/server/fleet-sums.ts'
import { LateStore } from '../../../support/store/late-store.ts'
import { ShardLife, TestCounters, whileTimePasses } from '../../../support/store/shard-life.ts'
import { bot as record, freshState, push } from '../../../support/store/shard-records.ts'

const steps = [
  'push',
  'push',
  'push',
  'push',
  'confirm',
  'confirm',
  'deliver',
  'deliver',
  'deliver',
  'register',
  'remove',
  'webhook',
  'pause',
  'bury',
  'dig',
] as const

interface Choice {
  readonly kind: (typeof steps)[number]
  readonly queue: number
  readonly amount: number
  readonly isWaited: boolean
  /** In turns of the event loop. */
  readonly pause: number
  readonly asks: boolean
}

interface Live {
  readonly id: number
  readonly bytes: number
  readonly acceptedAtS: number
}

/** One queue as the protocol describes it. */
class ModelQueue {
  live: Live[] = []
  nextId = 1_000
  floor = 1_000
  readonly dead = new Set<number>()
  isRegistered = false
  hasWebhook = false
  isPaused = false
}

const queues = [101, 102, 103, queueIdOf(101, true), queueIdOf(104, true)]

/** All queues, and the operations that change them. */
class Model {
  readonly queues = new Map<QueueId, ModelQueue>(queues.map((queue) => [queue, new ModelQueue()]))

  operations({ kind, queue: nth, amount }: Choice, nowS: number): readonly Operation[] {
    const queue = queues[nth % queues.length]!
    const model = this.queues.get(queue)!
    switch (kind) {
      case 'push': {
        const operation = push(model.nextId++, { queue, acceptedAtS: nowS })
        const { updateId: id, text } = operation
        model.live.push({ id, bytes: text.length, acceptedAtS: nowS })
        return [operation]
      }
      case 'confirm': {
        const from = model.floor
        const to = model.live[amount % 4]?.id ?? model.nextId
        const gone = model.live.filter(({ id }) => id < to)
        model.live = model.live.filter(({ id }) => id >= to)
        model.floor = to
        const removedBytes = bytesOf(gone)
        return [{ kind, queue, from, floor: to, removedCount: gone.length, removedBytes }]
      }
      case 'deliver': {
        const gone = model.live.filter((_live, at) => at % 3 === amount % 3)
        model.live = model.live.filter((_live, at) => at % 3 !== amount % 3)
        const updateIds = gone.map(({ id }) => id)
        // A floor that is not raised is a lower bound, as for a queue with a gap.
        return [
          { kind: 'delete', queue, updateIds, removedBytes: bytesOf(gone), floor: model.floor },
        ]
      }
      case 'register':
      case 'remove':
      case 'webhook':
      case 'pause':
      case 'bury':
      case 'dig':
        return this.#settings(kind, queue, model)
      default:
        return unreachable(kind)
    }
  }

  #settings(
    kind: Exclude<Choice['kind'], 'push' | 'confirm' | 'deliver'>,
    queue: QueueId,
    model: ModelQueue,
  ): readonly Operation[] {
    switch (kind) {
      case 'register':
      case 'remove':
        if (isTestQueue(queue)) return []
        model.isRegistered = kind === 'register'
        return [{ kind: 'bot', queue, record: model.isRegistered ? record : null }]
      case 'webhook':
        model.hasWebhook = !model.hasWebhook
        return [settingsOf(queue, model)]
      case 'pause':
        model.isPaused = !model.isPaused
        return [settingsOf(queue, model)]
      case 'bury': {
        const updateId = 500 + model.dead.size * 7 + model.nextId
        model.dead.add(updateId)
        return [{ kind: 'addDeadLetters', queue, deadLetters: [deadLetter(updateId)] }]
      }
      case 'dig': {
        const updateIds = [...model.dead].slice(0, 2)
        for (const id of updateIds) model.dead.delete(id)
        return [{ kind: 'removeDeadLetters', queue, updateIds }]
      }
      default:
        return unreachable(kind)
    }
  }

  /** What the fleet should say: the bots in the order of ids, and the sums. */
  expected(nowS: number) {
    const all = [...this.queues]
    const listed = all
      .filter(([, { isRegistered }]) => isRegistered)
      .map(([botId, model]) => ({
        botId,
        mode: model.hasWebhook ? 'webhook' : 'polling',
        pendingCount: model.live.length,
        oldestAgeS: model.live[0] && nowS - model.live[0].acceptedAtS,
        isPaused: model.isPaused,
      }))
    const ages = all.flatMap(([queue, { live }]) =>
      live[0] === undefined ? [] : [{ queue, ageS: nowS - live[0].acceptedAtS }],
    )
    ages.sort((a, b) => b.ageS - a.ageS || botIdOf(a.queue) - botIdOf(b.queue))
    const sum = (valueOf: (model: ModelQueue) => number): number =>
      all.reduce((total, [, model]) => total + valueOf(model), 0)
    return {
      listed,
      pending: sum(({ live }) => live.length),
      pendingBytes: sum(({ live }) => bytesOf(live)),
      deadLetters: sum(({ dead }) => dead.size),
      oldest: ages[0] && { botId: botIdOf(ages[0].queue), ageS: ages[0].ageS },
    }
  }
}

function bytesOf(live: readonly Live[]): number {
  return live.reduce((sum, { bytes }) => sum + bytes, 0)
}

function settingsOf(queue: QueueId, { hasWebhook, isPaused }: ModelQueue): Operation {
  const webhook = { url: 'https://example.com/', maxConnections: 1 }
  return {
    kind: 'settings',
    queue,
    record: { ...(hasWebhook ? { webhook } : {}), ...(isPaused ? { isPaused } : {}) },
  }
}

function deadLetter(updateId: number): StoredDeadLetter {
  return {
    updateId,
    typeNumber: 0,
    reason: 'expired',
    leftAtMs: 5,
    acceptedAtS: 5,
    attempts: 0,
    lastError: '',
    orderingKey: '',
    text: Buffer.from('"message":{}'),
  }
}

/** A shard whose store is far away, and its fleet. */
async function open(draw: () => number) {
  const clock = new FakeClock()
  const life = new ShardLife(new LateStore(new MemoryStore(), draw), clock)
  const { shard } = life
  const modules = new Modules<WorkerModule>()
  const fleet = new Fleet({
    clock,
    counters: new TestCounters(),
    log: silentLog,
    report: () => undefined,
    attempts: new AttemptLogs(),
    modules,
    bots: { loadedQueue: () => undefined, shards: [] },
    config: { foreignTokens: false },
  })
  life.onCommitted = (operations) => fleet.committed(shard, operations)
  await shard.open()
  for (const queue of queues) shard.track(queue, freshState())
  modules.list.push(fleetHooks(fleet), new BotFinder(clock, modules))
  return { clock, shard, fleet, start: () => modules.each('served', shard) }
}

async function assertSame(fleet: Fleet, model: Model, clock: FakeClock): Promise<void> {
  const expected = model.expected(Math.floor(clock.nowMs() / 1_000))
  const { bots, shards } = await fleet.list({ after: 0, limit: 10 })
  assert.deepEqual(shards, [3])
  const { counts } = await fleetSums(fleet)
  const { pending, pendingBytes, deadLetters, oldest } = counts
  assert.deepEqual(
    {
      listed: bots.map(({ botId, status }) => ({
        botId,
        mode: status?.mode,
        pendingCount: status?.pendingCount,
        oldestAgeS: status?.oldestAgeS,
        isPaused: status?.isPaused,
      })),
      pending,
      pendingBytes,
      deadLetters,
      oldest: oldest && { botId: oldest.botId, ageS: oldest.ageS },
    },
    expected,
  )
}

test('the fleet knows what a naive model knows, whenever its filling began and however long reads take', async () => {
  const choice: fc.Arbitrary<Choice> = fc.record({
    kind: fc.constantFrom(...steps),
    // Most changes are of one queue, so that its history is long.
    queue: fc.constantFrom(0, 0, 0, 0, 1, 2, 3, 4),
    amount: fc.nat(10),
    isWaited: fc.boolean(),
    pause: fc.nat(4),
    asks: fc.nat(3).map((drawn) => drawn === 0),
  })
  const history = fc.record({
    choices: fc.array(choice, { minLength: 5, maxLength: 100 }),
    startAt: fc.nat(30),
    // With a fast store, the filling ends early and most of the history follows it.
    turns: fc.oneof(fc.constant([0]), fc.array(fc.nat(8), { minLength: 5, maxLength: 40 })),
  })
  const property = fc.asyncProperty(history, async ({ choices, startAt, turns }) => {
    let drawn = 0
    const { clock, shard, fleet, start } = await open(() => turns[drawn++ % turns.length]!)
    const model = new Model()
    for (const [nth, each] of choices.entries()) {
      if (nth === startAt) start()
      clock.jump(1_000)
      const operations = model.operations(each, Math.floor(clock.nowMs() / 1_000))
      const done = shard.commit(operations, { waited: each.isWaited })
      if (each.isWaited && each.pause === 0) await done
      for (let left = each.pause; left > 0; left--) await nextTurn(clock)
      // A question may come at any time; what it reads may be outdated before it has read it.
      if (each.asks) void fleet.summary()
    }
    if (startAt >= choices.length) start()
    await whileTimePasses(clock, shard.commit([], { waited: true }))
    await settle()
    await whileTimePasses(clock, assertSame(fleet, model, clock))
    fleet.close()
    await whileTimePasses(clock, shard.close())
  })
  await fc.assert(property, { numRuns: drawnRuns(150) })
})
