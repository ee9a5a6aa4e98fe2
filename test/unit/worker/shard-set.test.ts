import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { WorkerPast } from '../../../src/worker/opening-verdict.ts'
import type { CheckedShard } from '../../../src/worker/shard-checker.ts'
import {
  asideLookMs,
  lateOpeningRetryMs,
  roomlessOpeningRetryMs,
  ShardSet,
  verifyEveryMs,
} from '../../../src/worker/shard-set.ts'
import type { NewOperatorEvent } from '../../../src/kit/operator-event.ts'
import type { Shard } from '../../../src/shard/shard.ts'
import type { ShardLife } from '../../../src/shard/recovery/shard-marks.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { type FileDamage, ShardDamaged } from '../../../src/store/shard-damaged.ts'
import type { StoreFiles } from '../../../src/store/store-files.ts'
import type { StoreEngine } from '../../../src/store/store-engine.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { until } from '../../support/kit/until.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const skip = (): void => undefined
const boot = 'boot'
const all = [0, 1, 2, 3]
const shared = { node: 'node', databases: 1, databaseIsAt: skip }
const start = { crash: undefined, triesAgain: true }

/** A worker's shards, in stores that outlast it. By default, other nodes can have them, too. */
async function setUp(
  more: Partial<StoreEngine> = { shared },
  past: WorkerPast = start,
  dataDir = '/nowhere',
) {
  // Bot N is on shard N modulo 4.
  const bots = await BotsLife.open({ shards: all.length, aside: all })
  const { clock, registry } = bots
  const stores = new Map<number, MemoryStore>()
  const life = {
    tried: [] as number[],
    served: [] as number[],
    left: [] as number[],
    stopped: [] as number[],
    failure: undefined as unknown,
    boot,
    events: [] as NewOperatorEvent[],
    marks: new Map<number, FileDamage | undefined>(),
    lives: new Map<number, ShardLife>(),
    checked: undefined as CheckedShard | undefined | Promise<CheckedShard>,
    /** The shards whose tables are damaged. */
    damaged: new Set<number>(),
    reason: damage.reason,
    doubted: [] as number[],
    verified: [] as number[],
    requested: [] as number[],
    /** How often the files of a shard that is set aside were verified. */
    judged: 0,
    broken: 0,
    brokenSeen: [] as number[],
    onEnded: new Map<number, (error: Error) => void>(),
    warnings: [] as object[],
  }
  const engine: StoreEngine = {
    ...more,
    asideText: 'set aside',
    space: async () => undefined,
    async open({ shard, onEnded, isDoubted }) {
      if (onEnded !== undefined) life.onEnded.set(shard, onEnded)
      life.tried.push(shard)
      if (isDoubted === true) life.doubted.push(shard)
      if (life.failure !== undefined) throw life.failure
      if (life.damaged.has(shard)) {
        throw new ShardDamaged({ ...damage, reason: life.reason })
      }
      const store = stores.get(shard) ?? new MemoryStore()
      stores.set(shard, store)
      return { store, hasLost: false, accept: async () => undefined, probe: async () => true }
    },
  }
  const warn = (fields: object, text: string): void => void life.warnings.push({ ...fields, text })
  const log = { debug: skip, info: skip, warn, error: skip }
  const shards = new ShardSet({
    clock,
    engine,
    map: { shardOf: () => assert.fail('no key is asked about') },
    dataDir,
    log,
    bots: registry.bots,
    onCommitted: (shard, operations) => void bots.modules.each('committed', shard, operations),
    shards: all,
    marks: {
      life: async (shard) => life.lives.get(shard) ?? closed,
      setLife: async (shard, recorded) => void life.lives.set(shard, recorded),
      broken: async (shard) => life.marks.get(shard),
      setBroken: async (shard, damage) => void life.marks.set(shard, damage),
      hasDamaged: async () => false,
      setChecking: async () => undefined,
    },
    past,
    checker: {
      check: async () => life.checked,
      request: async (shard) => void life.requested.push(shard),
      verify: async (shard) => void life.verified.push(shard),
      announce: async () => undefined,
      thread: { run: async () => undefined },
    },
    databases: {
      clockOf: () => clock,
      leaseOf: (_shard, claimedIn) => ({ isValid: () => claimedIn === life.boot }),
    },
    counters: {
      add(name, by) {
        if (name !== 'shards_broken') return
        life.broken += by
        life.brokenSeen.push(life.broken)
      },
      observe: () => undefined,
    },
    report: (event) => void life.events.push(event),
    streamsOf: (shard) => [{ stop: () => void life.stopped.push(shard) }],
    isBrief: () => true,
    isUnderWay: () => false,
    onServed: ({ index }: Shard) => void life.served.push(index),
    onLeft: ({ index }: Shard) => void life.left.push(index),
  })
  return { bots, clock, registry, shards, stores, life }
}

test('a shard is served between its opening and its leaving, and others are not affected', async () => {
  const { bots, clock, registry, shards, life } = await setUp()
  assert(!shards.serves(1))
  await shards.of(1).open({ shard: 1, boot })
  await shards.of(2).open({ shard: 2, boot })
  await shards.of(2).open({ shard: 2, boot })
  assert.deepEqual(life.served, [1, 2])
  assert(shards.serves(1) && shards.serves(2))
  const [first, second] = [101, 102]
  await bots.register(first)
  await bots.register(second)
  const left = shards.of(1).leave(() => [])
  await clock.advance(1_000)
  await left
  assert(!shards.serves(1))
  assert.deepEqual(life.left, [1])
  // Those of the other shard go on.
  assert.deepEqual(life.stopped, [1])
  await assert.rejects(registry.report(first), { code: 'STORE_UNAVAILABLE' })
  assert.equal((await registry.report(second)).botId, second)
  await shards.of(1).open({ shard: 1, boot })
  assert.equal((await registry.report(first)).botId, first)
})

function toldReads(shard: number, reads: number): object {
  const text = 'reads of a shard have failed, and what needed them was refused'
  return { shard, reads, error: 'Error: the database is silent', text }
}

test('reads that fail are refused and have their reason in the log, once a second for each shard', async () => {
  const { clock, registry, shards, stores, life } = await setUp()
  for (const shard of [1, 2]) await shards.of(shard).open({ shard, boot })
  for (const store of stores.values()) {
    store.getMany = () => Promise.reject(new Error('the database is silent'))
  }
  const read = (bot: number): Promise<void> =>
    assert.rejects(registry.report(bot), { code: 'STORE_UNAVAILABLE' })
  for (const bot of [101, 105, 102, 109]) await read(bot)
  assert.deepEqual(life.warnings, [toldReads(1, 1), toldReads(2, 1)])
  await clock.advance(1_000)
  await read(101)
  assert.deepEqual(life.warnings.slice(2), [toldReads(1, 3)])
})

test('a waiting poll of a shard that leaves ends with an empty list, and one of another shard waits on', async () => {
  const { bots, clock, shards } = await setUp()
  await shards.open([
    { shard: 1, boot },
    { shard: 2, boot },
  ])
  const answers = new Map<number, unknown>()
  for (const shard of [1, 2]) {
    const queue = await bots.queueOf(await bots.register(100 + shard))
    const reply = queue.poller.poll(pollRequest, { onGone: undefined })
    void Promise.resolve(reply).then((value) => answers.set(shard, value))
  }
  const left = shards.of(1).leave(() => [])
  await clock.advance(1_000)
  await left
  assert.deepEqual([...answers], [[1, []]])
})

test('a dropped shard is gone at once, and shards that cannot be opened are left out', async () => {
  const { shards, life } = await setUp()
  assert.deepEqual(await shards.open([{ shard: 0, boot }]), [0])
  await shards.of(0).drop()
  await shards.of(3).drop()
  assert(!shards.serves(0))
  life.failure = new Error('the database is away')
  assert.deepEqual(await shards.open([{ shard: 0, boot }]), [])
  await assert.rejects(shards.of(0).open({ shard: 0, boot }), /away/)
})

test('a poll gets nothing of what the shard held in an earlier life of the node', async () => {
  const { bots, clock, shards, life } = await setUp()
  await shards.of(1).open({ shard: 1, boot })
  const queue = await bots.queueOf(await bots.register(101))
  await bots.push(bots.request(101))
  life.boot = 'the next one'
  const reply = Promise.resolve(queue.poller.poll(pollRequest, { onGone: undefined }))
  await clock.advance(pollRequest.timeoutMs)
  assert.deepEqual(await reply, [])
  life.boot = boot
  const again = await queue.poller.poll(pollRequest, { onGone: undefined })
  assert.equal(again.length, 1)
})

test('a shard whose tables are wrong is set aside and reported, and another process may find it sound', async () => {
  const { registry, shards, life } = await setUp()
  const damage = { file: 'db/postbote, tables of shard 1', reason: 'there is no u_1' }
  life.failure = new ShardDamaged(damage)
  life.marks.set(2, damage)
  // The primary counts it among the open ones, because its requests are answered here.
  assert.deepEqual(await shards.open([{ shard: 1, boot }]), [1])
  assert(shards.serves(1))
  assert.deepEqual(
    [...life.marks].filter(([, mark]) => mark !== undefined),
    [[1, { ...damage, offset: undefined }]],
  )
  assert.deepEqual(
    life.events.map(({ type, shard, reason }) => [type, shard, reason]),
    [['shard.broken', 1, 'there is no u_1']],
  )
  await assert.rejects(registry.report(101), { code: 'SHARD_BROKEN' })
  await shards.of(1).drop()
  assert(!shards.serves(1))
  assert.equal(life.marks.get(1), undefined)
  await assert.rejects(registry.report(101), { code: 'STORE_UNAVAILABLE' })
  life.failure = undefined
  await shards.of(1).open({ shard: 1, boot })
  await assert.rejects(registry.report(101), { code: 'UNKNOWN_BOT' })
})

test('nothing is opened after the end', async () => {
  const { shards } = await setUp()
  await shards.of(0).open({ shard: 0, boot })
  await shards.close()
  assert(!shards.serves(0))
  await assert.rejects(shards.of(1).open({ shard: 1, boot }), /gives up/)
})

test('a shard may be dropped at any moment of the end of the worker', async () => {
  for (let moment = 0; moment < 20; moment++) {
    const { shards } = await setUp()
    await shards.of(0).open({ shard: 0, boot })
    const end = shards.close()
    for (let turn = 0; turn < moment; turn++) await Promise.resolve()
    await shards.of(0).drop()
    await end
    assert(!shards.serves(0))
  }
})

const pollRequest = { offset: 0, limit: 100, timeoutMs: 50_000, allowedTypes: undefined }

test('a shard that cannot be written any more is reported', async () => {
  const { shards, life } = await setUp()
  await shards.of(1).open({ shard: 1, boot })
  await shards.of(2).open({ shard: 2, boot })
  assert.deepEqual(life.events, [])
  life.onEnded.get(2)?.(new Error('the connection is lost'))
  await settle()
  assert.deepEqual(
    life.events.map(({ type, shard }) => [type, shard]),
    [['shard.poisoned', 2]],
  )
})

const closed: ShardLife = { phase: 'closed', isUnchecked: false, deaths: 0 }
const sound: CheckedShard = { files: 1, damages: [], damagesFound: 0, fatal: undefined }
const damage: FileDamage = {
  file: 'shards/1/000005.ldb',
  offset: 7,
  reason: 'block checksum mismatch',
}

function shardIn(directory: string): number {
  return Number(directory.at(-1))
}

/** The shards of a single machine, of which a process died while it had shard 1 open and was compacting it. */
async function setUpFiles(t: TestContext, past: WorkerPast) {
  const prints = new Map<number, string>()
  const files: Partial<StoreFiles> = {
    wasCompacting: async (directory) => directory.endsWith('/1'),
    damageOf: (error) => (error instanceof Error && /EIO/.test(error.message) ? damage : undefined),
    isFailedWrite: async () => false,
    fingerprint: async (directory) => prints.get(shardIn(directory)) ?? 'as it was',
    mayBeSound: async ({ directory }) => {
      made.life.judged += 1
      return !made.life.damaged.has(shardIn(directory))
    },
    isOutOfRoom: (error) => error instanceof Error && /No space/.test(error.message),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these are used
  const engine = { files: files as StoreFiles }
  const made = await setUp(engine, past, temporaryDirectory(t))
  made.life.lives.set(1, { phase: 'open', isUnchecked: true, deaths: 0 })
  return { ...made, prints, openings: all.map((shard) => ({ shard, boot: '' })) }
}

const died: WorkerPast = { crash: { signal: 'SIGSEGV', inARow: 1 }, triesAgain: false }

test('a single machine serves a shard in doubt by refusing its requests until its files are checked', async (t) => {
  const { registry, shards, life, openings } = await setUpFiles(t, died)
  life.checked = sound
  assert.deepEqual(await shards.open(openings), all)
  assert.deepEqual(life.lives.get(1), { phase: 'opening', isUnchecked: true, deaths: 1 })
  assert(shards.serves(1))
  await until(() => life.served.includes(1))
  assert.equal(life.served.at(-1), 1)
  assert.deepEqual(life.doubted, [1])
  await until(() => life.lives.get(1)?.isUnchecked === false)
  assert.deepEqual(life.lives.get(1), { phase: 'open', isUnchecked: false, deaths: 1 })
  await assert.rejects(registry.report(101), { code: 'UNKNOWN_BOT' })
  await shards.close()
  assert.deepEqual(
    [...life.lives.values()],
    all.map(() => closed),
  )
})

test('a shard in which a check finds damage is set aside, and its bots are refused', async (t) => {
  const { registry, shards, life, openings } = await setUpFiles(t, died)
  life.damaged.add(1)
  await shards.open(openings)
  await until(() => life.marks.has(1))
  assert.deepEqual([life.marks.get(1), life.broken], [damage, 1])
  assert.equal(life.lives.get(1)?.phase, 'closed')
  await assert.rejects(registry.report(101), { code: 'SHARD_BROKEN' })
})

test('a shard that was set aside stays so after a death, and is checked again after a start', async (t) => {
  const again = await setUpFiles(t, died)
  again.life.marks.set(2, damage)
  await again.shards.open(again.openings)
  await assert.rejects(again.registry.report(102), { code: 'SHARD_BROKEN' })
  assert.equal(again.life.broken, 1)
  const started = await setUpFiles(t, start)
  started.life.marks.set(2, damage)
  started.life.checked = sound
  await started.shards.open(started.openings)
  await until(() => started.life.served.includes(2))
  assert.deepEqual([started.life.marks.get(2), started.life.broken], [undefined, 0])
  await assert.rejects(started.registry.report(102), { code: 'UNKNOWN_BOT' })
})

test('a single machine does not start if a shard cannot be opened, and later tries one in doubt again', async (t) => {
  const { shards, life, openings } = await setUpFiles(t, start)
  life.failure = new Error('no descriptors are left')
  await assert.rejects(shards.open(openings), /descriptors/)
  const late = await setUpFiles(t, died)
  late.life.checked = sound
  await late.shards.open(late.openings)
  late.life.failure = new Error('no descriptors are left')
  const phase = (): unknown => late.life.lives.get(1)?.phase
  await until(() => late.life.tried.includes(1) && phase() === 'waiting')
  assert(late.shards.serves(1))
  late.life.failure = undefined
  await late.clock.advance(lateOpeningRetryMs)
  await until(() => phase() === 'open')
})

test('a shard for which the disk has no room stays broken while it is tried again, and is served when there is room', async (t) => {
  const { clock, registry, shards, life, openings, prints } = await setUpFiles(t, start)
  life.failure = new Error('IO error: No space left on device')
  assert.deepEqual(await shards.open(openings), all)
  await assert.rejects(registry.report(102), { code: 'SHARD_BROKEN' })
  const tried = life.tried.length
  await settle()
  prints.set(2, 'what a try has left')
  for (let looks = 0; looks < 2; looks++) {
    await clock.advance(asideLookMs)
    await settle()
  }
  assert.equal(life.tried.length, tried, 'no look is a try')
  life.brokenSeen.length = 0
  await clock.advance(roomlessOpeningRetryMs)
  await until(() => life.tried.length === tried + all.length)
  assert.deepEqual(life.brokenSeen, [])
  life.failure = undefined
  await until(async () => {
    await clock.advance(roomlessOpeningRetryMs)
    return life.served.length === all.length
  })
  assert.equal(life.broken, 0)
  assert(life.events.every(({ type }) => type === 'shard.broken'))
  assert.equal(life.events.length, all.length)
})

test('a database without room leaves its shards to the next decision', async () => {
  const { shards, life } = await setUp()
  life.failure = new Error('could not extend file: No space left on device')
  assert.deepEqual(await shards.open([{ shard: 1, boot }]), [])
  assert(!shards.serves(1))
  assert.deepEqual(life.events, [])
})

test('a shard that is set aside is served again when somebody has mended its files and is done, and not before', async (t) => {
  const { clock, shards, life, openings, prints } = await setUpFiles(t, start)
  life.damaged.add(2)
  await shards.open(openings)
  assert.equal(life.broken, 1)
  const look = async (): Promise<void> => {
    await settle()
    await clock.advance(asideLookMs)
    await settle()
  }
  const tries = (): number => life.tried.filter((shard) => shard === 2).length
  await look()
  await look()
  assert.equal(tries(), 1)
  life.damaged.clear()
  // Nobody has touched the files: they are not read again and again.
  await look()
  assert.equal(tries(), 1)
  prints.set(2, 'half of a copy')
  await look()
  prints.set(2, 'a copy')
  await look()
  assert.equal(tries(), 1)
  await look()
  await until(() => life.served.includes(2))
  assert.deepEqual([tries(), life.broken, life.marks.get(2)], [2, 0, undefined])
  await shards.close()
})

test('files of a shard set aside that are still unsound are verified once, and those that are sound are checked when it is served', async (t) => {
  const { clock, shards, life, openings, prints } = await setUpFiles(t, start)
  life.damaged.add(2)
  await shards.open(openings)
  const look = async (): Promise<void> => {
    await settle()
    await clock.advance(asideLookMs)
    await settle()
  }
  await look()
  prints.set(2, 'another damaged copy')
  for (let looks = 0; looks < 6; looks++) await look()
  assert.equal(life.judged, 1)
  assert.deepEqual(life.requested, [])
  prints.set(2, 'a copy')
  life.damaged.clear()
  for (let looks = 0; looks < 3; looks++) await look()
  await until(() => life.served.includes(2))
  await until(() => life.requested.length > 0)
  assert.deepEqual([life.judged, life.requested], [2, [2]])
  await shards.close()
})

test('a shard that the disk could not read is served again without a change of its files', async (t) => {
  const { clock, shards, life, openings } = await setUpFiles(t, start)
  life.reason = '512 bytes cannot be read (EIO)'
  life.damaged.add(2)
  await shards.open(openings)
  for (let looks = 0; looks < 3; looks++) {
    await settle()
    await clock.advance(asideLookMs)
  }
  // It is asked quietly, so that the log and the events do not repeat it.
  assert.equal(life.events.length, 1)
  life.damaged.clear()
  await until(async () => {
    await clock.advance(asideLookMs)
    return life.served.includes(2)
  })
  await shards.close()
})

test('all open shards are verified after the start and again later, beside a check that takes long, and none that is set aside', async (t) => {
  const { clock, shards, life, openings } = await setUpFiles(t, start)
  const ends: ((checked: CheckedShard) => void)[] = []
  life.checked = new Promise((resolve) => ends.push(resolve))
  life.damaged.add(2)
  await shards.open(openings)
  await until(() => life.verified.length === 3)
  assert.deepEqual(life.verified, [0, 1, 3])
  await clock.advance(verifyEveryMs)
  await until(() => life.verified.length === 6)
  for (const end of ends) end(sound)
  await shards.close()
})
