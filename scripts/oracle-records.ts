/**
 * The bytes of a shard after a fixed life: every kind of record is written, by operations that bots, producers and the
 * private API cause. Nothing in it is random, and the clock is the `FakeClock`. A refactoring that changes a byte could not
 * read the directories and exports of before.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BackupFile } from '../src/features/backup/backup-file.ts'
import type { Operation, PushOperation } from '../src/shard/operations.ts'
import { emptyQueueState } from '../src/shard/records/record.ts'
import { queueIdOf } from '../src/shard/records/record-keys.ts'
import type { Shard } from '../src/shard/shard.ts'
import { ShardSection } from '../src/features/backup/shard-section.ts'
import { FakeClock } from '../test/support/kit/fake-clock.ts'
import { temporaryRoot } from '../test/support/kit/temporary-root.ts'
import { MemoryStore } from '../test/support/store/memory-store.ts'
import { ShardLife, whileTimePasses } from '../test/support/store/shard-life.ts'

const madeAtMs = 1_800_000_000_000
const madeAtS = madeAtMs / 1_000
const polling = queueIdOf(100, false)
const pushedTo = queueIdOf(101, false)
const test = queueIdOf(100, true)
const sha256 = 'n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg'

interface Pushed {
  readonly queue: number
  readonly updateId: number
  readonly text?: string
}

function push({ queue, updateId, text = `"message":{"n":${updateId}}` }: Pushed): PushOperation {
  return {
    kind: 'push',
    queue,
    updateId,
    typeNumber: 0,
    acceptedAtS: madeAtS,
    expiresAtS: madeAtS + 3_600,
    orderingKey: 'm1',
    text: Buffer.from(text),
  }
}

const left = {
  typeNumber: 7,
  reason: 'refused',
  leftAtMs: madeAtMs + 1_000,
  acceptedAtS: madeAtS,
  attempts: 3,
  lastError: 'Connection refused',
  orderingKey: 'm5',
  text: Buffer.from('"message":{}'),
} as const

/** The groups that are committed, in their order. */
export const recordsLife: readonly (readonly Operation[])[] = [
  [
    {
      kind: 'bot',
      queue: polling,
      record: {
        firstName: 'Über',
        username: 'a_bot',
        secrets: [{ sha256 }, { sha256, endsAtMs: madeAtMs + 60_000, isForeign: true }],
        createdAtMs: madeAtMs,
        registeredBy: sha256,
        isValidated: true,
        polls: 'take_over',
        ttlS: 60,
        connectionsMax: 7,
        retryDelaysS: [1, 5],
        headers: { 'X-A': 'b' },
        portalLinks: [
          {
            id: '00'.repeat(8),
            sha256,
            createdAtMs: madeAtMs,
            endsAtMs: madeAtMs + 60_000,
            can: ['look', 'replay'],
            origin: 'https://example.com',
          },
        ],
      },
    },
  ],
  [
    {
      kind: 'bot',
      queue: pushedTo,
      record: {
        firstName: 'B',
        username: 'b_bot',
        secrets: [{ sha256 }],
        createdAtMs: madeAtMs,
        relay: {
          from: 'https://example.com',
          originBotId: 5,
          sealedToken: 'sealed',
          setAtMs: madeAtMs,
          offset: 12,
          storedAtMs: madeAtMs,
        },
      },
    },
    {
      kind: 'settings',
      queue: pushedTo,
      record: {
        webhook: {
          url: 'https://example.com/hook',
          maxConnections: 40,
          secretToken: 'secret-0',
          ipAddress: '192.0.2.1',
          verifiedAddress: '192.0.2.1',
          goneSinceMs: madeAtMs,
          failures: {
            inRow: 2,
            sinceMs: madeAtMs,
            last: { atMs: madeAtMs, updateId: 2_000, status: 500, durationMs: 5, error: 'Bad' },
          },
        },
        allowedTypes: 5,
        isPaused: true,
        deliveriesPerSecond: 9,
        retention: { ms: 3_600_000, bytes: 1_000 },
        signingKeys: [
          { id: 'key_0', type: 'hmac-sha256', secret: 'c2VjcmV0', createdAtMs: madeAtMs },
        ],
      },
    },
  ],
  [1_000, 1_001, 1_002, 1_003].map((updateId) => push({ queue: polling, updateId })),
  [push({ queue: test, updateId: 500, text: '"poll":{"id":"1"}' })],
  [2_000, 2_001, 2_002].map((updateId) => push({ queue: pushedTo, updateId })),
  [
    {
      ...push({ queue: polling, updateId: 1_004 }),
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      idempotency: {
        keyHash: 'k'.repeat(16),
        textHash: 't'.repeat(16),
        acceptedAtMs: madeAtMs,
      },
    },
  ],
  [
    {
      kind: 'confirm',
      queue: polling,
      from: 1_000,
      floor: 1_002,
      removedCount: 2,
      removedBytes: 36,
      keptSinceMs: madeAtMs + 500,
    },
  ],
  [
    {
      kind: 'delete',
      queue: pushedTo,
      updateIds: [2_000],
      removedBytes: 18,
      floor: 2_001,
      kept: [{ ...left, updateId: 2_000, reason: 'delivered' }],
    },
    {
      kind: 'delete',
      queue: pushedTo,
      updateIds: [2_001],
      removedBytes: 18,
      floor: 2_002,
    },
    { kind: 'addDeadLetters', queue: pushedTo, deadLetters: [{ ...left, updateId: 2_001 }] },
  ],
  [
    {
      kind: 'attempts',
      queue: pushedTo,
      record: {
        texts: ['192.0.2.1', 'Bad', 'no'],
        rows: [
          [madeAtMs, 2_000, 200, 5, 0, 0, 0, -1, -1],
          [madeAtMs + 9, 2_001, 500, 7, 1_000, 1, 0, 1, 2],
        ],
      },
    },
    {
      kind: 'replay',
      queue: pushedTo,
      jobId: 1,
      record: {
        selection: { state: 'dead', typeNumber: 7, orderingKey: 'm5', untilS: madeAtS + 60 },
        rate: 50,
        startedAtMs: madeAtMs + 2_000,
        end: 2_003,
        total: 1,
        idempotency: { key: sha256, content: sha256 },
        state: 'paused',
        next: 2_001,
        replayed: 0,
        filtered: 0,
        tooLarge: 0,
        reason: 'the queue is full',
        refusal: 'QUEUE_FULL',
      },
    },
    {
      kind: 'accessKey',
      id: '0123456789abcdef',
      record: {
        name: 'producer',
        scopes: ['push', 'read'],
        bots: [100, 101],
        updatesPerSecond: 10,
        requestsPerSecond: 20,
        secrets: [{ sha256 }],
        createdAtMs: madeAtMs,
        endsAtMs: madeAtMs + 60_000,
        limitSlot: 3,
      },
    },
    {
      kind: 'audit',
      id: '01a3185c500000000000',
      record: {
        timeMs: madeAtMs,
        key: { id: '0123456789abcdef', name: 'producer' },
        operation: 'removeBot',
        call: 'DELETE /v1/bots/103',
        botId: 103,
        result: 'ok',
        requestId: 'request-0',
      },
    },
  ],
]

/** Has a shard know the queues of `recordsLife`, which must come before it. */
export function trackQueues(shard: Shard): void {
  shard.track(polling, emptyQueueState(1_000))
  shard.track(pushedTo, emptyQueueState(2_000))
  shard.track(test, emptyQueueState(500))
}

/** Returns each record as hexadecimal digits, then the hash of a backup file with this one shard. */
export async function recordsOracle(): Promise<string> {
  const store = new MemoryStore()
  const clock = new FakeClock(madeAtMs)
  const { shard } = new ShardLife(store, clock)
  await shard.open()
  trackQueues(shard)
  for (const group of recordsLife) {
    await whileTimePasses(clock, shard.commit(group, { waited: true }))
  }
  const backup = await backupHash(await ShardSection.begin(shard, 8))
  await whileTimePasses(clock, shard.close())
  await store.open()
  const everything = { gte: Buffer.of(0), lt: Buffer.of(255), limit: 1_000 }
  const records = await store.range(everything)
  const lines = records.map(
    ({ key, value }) =>
      `${key.toString('latin1', 0, 1)} ${key.toString('hex')} ${value.toString('hex')}`,
  )
  return [...lines, `backup sha256 ${backup}`, ''].join('\n')
}

async function backupHash(section: ShardSection): Promise<string> {
  const directory = await mkdtemp(join(temporaryRoot, 'postbote-oracle-'))
  try {
    const path = join(directory, 'backup')
    const file = await BackupFile.create(path, madeAtS, ['added_type'])
    for await (const frame of section.frames()) await file.append(frame)
    await section.close()
    await file.finish({ shards: 1, records: recordsLife.length })
    return createHash('sha256').update(readFileSync(path)).digest('hex')
  } finally {
    await rm(directory, { recursive: true })
  }
}
