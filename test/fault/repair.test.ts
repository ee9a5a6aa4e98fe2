import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { describeDamage } from '../../src/features/repair/describe-damage.ts'
import { updateIdEnd } from '../../src/shard/records/record-keys.ts'
import { levelEngine } from '../../src/store/level/level-engine.ts'
import { LevelStore } from '../../src/store/level/level-store.ts'
import { finishRepair, type Repaired, repairShard } from '../../src/features/repair/repair-shard.ts'
import type { RescueOptions } from '../../src/shard/recovery/rescue-records.ts'
import { Shard } from '../../src/shard/shard.ts'
import type { StoreOperation } from '../../src/store/store.ts'
import type { StoredQueue } from '../../src/shard/records/stored-records.ts'
import {
  botOperations,
  editFile,
  filesWith,
  levelShard,
  levelShardBot as bot,
  replaceDirectory,
  updateOperation,
} from '../support/store/level-shard.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { shardRecords } from '../../src/shard/shard-records.ts'

const floor = 20
const end = 600

function range(from: number, to: number): StoreOperation[] {
  return Array.from({ length: to - from }, (_, index) => updateOperation(from + index))
}

interface Place {
  /** The data directory. */
  readonly directory: string
  readonly shard: string
}

/**
 * Creates a data directory with one shard whose bot has updates 20 to 599. Updates 0 to 19 are deleted in a later
 * table. The last hundred updates are in the log, ten in each batch.
 */
async function place(t: TestContext): Promise<Place> {
  const directory = temporaryDirectory(t)
  const shard = join(directory, 'shards', '0')
  mkdirSync(join(directory, 'shards'))
  const deletions = range(0, floor).map(({ key }) => ({ type: 'del' as const, key }))
  const batches = Array.from({ length: 10 }, (_, at) => range(500 + at * 10, 510 + at * 10))
  await levelShard(shard, [
    [range(0, 300), botOperations(0, 300)],
    [[...deletions, ...range(300, 500)], botOperations(floor, 500)],
    [...batches, botOperations(floor, end).slice(1)],
  ])
  return { directory, shard }
}

async function damagesOf({ directory, shard }: Place): Promise<string[]> {
  const damages: string[] = []
  const options = { records: shardRecords, directory: shard, clock: systemClock }
  for await (const part of levelEngine.files.read(options)) {
    if (part.kind === 'damage') damages.push(describeDamage(part, directory))
  }
  return damages
}

async function repair({ directory }: Place, more: Partial<RescueOptions> = {}): Promise<Repaired> {
  await finishRepair(directory, 0)
  return repairShard(directory, 0, {
    files: levelEngine.files,
    clock: systemClock,
    isOwn: () => true,
    onDamage: () => undefined,
    onProgress: () => undefined,
    ...more,
  })
}

/** Returns what a start finds in a shard: the ids of its bot's updates, and its ids and counts. */
async function served({ shard: directory }: Place): Promise<{ ids: number[]; queue: StoredQueue }> {
  const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
  const shard = new Shard({
    index: 0,
    clock: systemClock,
    store,
    log: { error: assert.fail, info: () => undefined },
    onCommitted: () => undefined,
    onReset: () => undefined,
    probe: () => Promise.resolve(true),
  })
  await shard.open()
  const [queue] = await shard.load([bot])
  assert(queue !== undefined)
  const all = { queue: bot, from: 0, to: updateIdEnd, limit: 10_000 }
  const { updates } = await shard.readUpdates(all)
  await shard.close()
  return { ids: updates.map(({ updateId }) => updateId), queue }
}

function tables(shard: string): string[] {
  return filesWith(shard, '.ldb')
}

function flip(path: string, offset: number): void {
  editFile(path, (bytes) => {
    const at = offset < 0 ? bytes.length + offset : offset
    bytes[at] = (bytes[at] ?? 0) ^ 0x10
    return bytes
  })
}

function zero(path: string, from: number, to?: number): void {
  editFile(path, (bytes) => bytes.fill(0, from < 0 ? bytes.length + from : from, to))
}

function manifestOf(shard: string): string {
  const [path = ''] = filesWith(shard, '').filter((each) => basename(each).startsWith('MANIFEST-'))
  return path
}

/** What happens to a shard, what the check reports, and how many of its 580 updates are lost at most. */
const rows: readonly {
  readonly name: string
  readonly damage: (shard: string) => void
  readonly told: RegExp
  readonly lostMax: number
  /** Set if the newest `s` record is lost as well, so that nothing shows how many updates there were. */
  readonly isCountLost?: true
}[] = [
  {
    name: 'a zeroed sector in a table',
    damage: (shard) => zero(tables(shard)[0] ?? '', 1_024, 1_536),
    told: /ldb, byte 0: checksum mismatch of the block; what lies between .* of bot 123 and .* of bot 123 may be lost/,
    lostMax: 280,
  },
  {
    name: 'a bit in the data of a table',
    damage: (shard) => flip(tables(shard)[0] ?? '', 900),
    told: /ldb, byte 0: checksum mismatch: one bit of the block is flipped/,
    lostMax: 0,
  },
  {
    name: 'a bit in the index of a table',
    damage: (shard) => flip(tables(shard)[0] ?? '', -60),
    told: /ldb, byte \d+: index: checksum mismatch: one bit/,
    lostMax: 0,
  },
  {
    name: 'a zeroed index',
    damage: (shard) => zero(tables(shard)[0] ?? '', -80),
    told: /ldb, byte \d+: the end of the table is no footer/,
    lostMax: 0,
  },
  {
    name: 'a table that was cut',
    damage: (shard) => truncateSync(tables(shard)[0] ?? '', 2_000),
    told: /ldb, byte 2000: the table has 2000 bytes, and the MANIFEST says/,
    lostMax: 280,
  },
  {
    name: 'a missing table',
    damage: (shard) => rmSync(tables(shard)[0] ?? ''),
    told: /ldb, byte 0: the table is missing, .* between registration of bot 123 and update 299 of bot 123/,
    lostMax: 280,
  },
  {
    name: 'a missing log',
    damage: (shard) => rmSync(filesWith(shard, '.log')[0] ?? ''),
    told: /log, byte 0: the log is missing, and the MANIFEST names it/,
    lostMax: 100,
    isCountLost: true,
  },
  {
    name: 'a damaged log',
    damage: (shard) => zero(filesWith(shard, '.log')[0] ?? '', 700, 1_212),
    told: /log, byte \d+: .*; what was written between update 5\d\d of bot 123 and update 5\d\d of bot 123 may be lost/,
    lostMax: 30,
  },
  {
    name: 'a damaged MANIFEST',
    damage: (shard) => zero(manifestOf(shard), 0, 60),
    told: /MANIFEST-\d+, byte 0: /,
    lostMax: 0,
  },
  {
    name: 'a missing MANIFEST',
    damage: (shard) => rmSync(manifestOf(shard)),
    told: /MANIFEST-\d+, byte 0: is missing/,
    lostMax: 0,
  },
  {
    name: 'a missing CURRENT',
    damage: (shard) => rmSync(join(shard, 'CURRENT')),
    told: /CURRENT, byte 0: is missing/,
    lostMax: 0,
  },
]

for (const { name, damage, told, lostMax, isCountLost } of rows) {
  test(`${name} is named, all else is rescued, and no id is used again`, async (t) => {
    const at = await place(t)
    damage(at.shard)
    const before = await damagesOf(at)
    assert.match(before.join('\n'), told)
    const { kept, losses } = await repair(at)
    assert.deepEqual(await damagesOf(at), [])
    const { ids, queue } = await served(at)
    const lost = end - floor - ids.length
    assert(lost <= lostMax, `${lost} updates are lost`)
    // The queue itself reports what it has lost, and no deleted update is back.
    const isTold = lost > 0 && isCountLost !== true
    assert.deepEqual(
      losses.map((loss) => [loss.queue, loss.updatesLeft]),
      isTold ? [[bot, ids.length]] : [],
    )
    assert.deepEqual(
      ids.filter((id) => id < floor),
      [],
    )
    assert.equal(queue.state?.liveCount, ids.length)
    assert(queue.state.nextId >= end, `the next id is ${queue.state.nextId}`)
    assert(kept !== undefined && existsSync(kept))
    assert.equal(existsSync(`${at.shard}.repair`), false)
  })
}

test('a bad sector of a table costs only the records in it', async (t) => {
  const at = await place(t)
  const [bad = ''] = tables(at.shard)
  const badSize = statSync(bad).size
  const readAt: RescueOptions['readAt'] = async (file, target, { offset, length }) => {
    const { size } = await file.stat()
    if (size === badSize && offset < 1_536 && offset + length > 1_024) {
      throw Object.assign(new Error('i/o error'), { code: 'EIO' })
    }
    return (await file.read(target, 0, length, offset)).bytesRead
  }
  const damages: string[] = []
  await repair(at, {
    readAt,
    onDamage: (each) => void damages.push(describeDamage(each, at.directory)),
  })
  assert.match(damages.join('\n'), /ldb, byte 1024: 512 bytes cannot be read \(EIO\)/)
  const { ids } = await served(at)
  assert(ids.length > end - floor - 280 && ids.length < end - floor, `${ids.length} updates`)
})

test('an update with an older version in another table keeps its newest value, with and without a MANIFEST', async (t) => {
  const at = await place(t)
  await levelShard(at.shard, [[[updateOperation(100, '"message":{"n":"newer"}')]], [[]]])
  for (const name of ['', 'CURRENT']) {
    if (name !== '') rmSync(join(at.shard, name))
    await repair(at)
    const store = new LevelStore({ directory: at.shard, clock: systemClock, lockWaitMs: 0 })
    await store.open()
    const [value] = await store.getMany([updateOperation(100).key])
    await store.close()
    assert.match(String(value), /newer/)
  }
})

test('lost ids and counts are computed from the updates, and the ids skip ahead', async (t) => {
  const at = await place(t)
  // The second table and the log have newer versions of the `s` record; the first table has the oldest.
  for (const path of [...tables(at.shard), ...filesWith(at.shard, '.log')].slice(1)) rmSync(path)
  const older = await repair(at)
  assert.equal(older.losses.length, 0)
  const { ids, queue } = await served(at)
  assert.equal(ids.length, 300)
  assert.equal(queue.state?.nextId, 300 + 1_000_000)
})

test('a shard without its directory is created again, and a server can open it', async (t) => {
  const at = await place(t)
  rmSync(join(at.directory, 'shards'), { recursive: true })
  assert.match((await damagesOf(at)).join(), /^shards\/0, byte 0: the directory is missing$/)
  const { kept, records } = await repair(at)
  assert.deepEqual([kept, records], [undefined, 0])
  assert.deepEqual(await damagesOf(at), [])
  assert.deepEqual((await served(at)).ids, [])
})

test('an interrupted repair is finished or started again by the next one, and the old shard is never lost', async (t) => {
  const at = await place(t)
  rmSync(tables(at.shard)[1] ?? '')
  const copy = join(temporaryDirectory(t), 'copy')
  replaceDirectory(at.shard, copy)
  const work = `${at.shard}.repair`
  // The repair was interrupted before the new database was complete.
  mkdirSync(join(work, 'staging'), { recursive: true })
  mkdirSync(join(work, 'shard'))
  await repair(at)
  const { ids } = await served(at)
  assert(ids.length > 300)
  const [kept = ''] = readdirSync(join(at.directory, 'shards')).filter((name) =>
    /damaged/.test(name),
  )
  assert.deepEqual(filesOf(join(at.directory, 'shards', kept)), filesOf(copy))
  // The repair was interrupted between the two renames.
  const fresh = join(temporaryDirectory(t), 'fresh')
  replaceDirectory(at.shard, fresh)
  rmSync(at.shard, { recursive: true })
  replaceDirectory(fresh, join(work, 'shard'))
  writeFileSync(join(work, 'ready'), '')
  assert.equal(await finishRepair(at.directory, 0), true)
  assert.deepEqual((await served(at)).ids, ids)
  assert.equal(existsSync(work), false)
  // The new database is ready, but a server has used the old shard since.
  replaceDirectory(fresh, join(work, 'shard'))
  writeFileSync(join(work, 'ready'), '')
  assert.equal(await finishRepair(at.directory, 0), false)
  assert.deepEqual((await served(at)).ids, ids)
  assert.equal(existsSync(work), false)
})

test('a shard that was written with another number of shards is refused and unchanged', async (t) => {
  const at = await place(t)
  const files = filesOf(at.shard)
  await assert.rejects(
    repair(at, { isOwn: () => false }),
    /records of shard 0 belong to bots of other shards: .* postbote.json .* restore that number first/,
  )
  assert.deepEqual(filesOf(at.shard), files)
  assert.deepEqual(readdirSync(join(at.directory, 'shards')), ['0'])
})

test('a repair that fails, as on a full disk, leaves only the old shard', async (t) => {
  const at = await place(t)
  const files = filesOf(at.shard)
  const full = Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  const failing = repair(at, {
    onProgress: (step) => {
      if (step === 'writing') throw full
    },
  })
  await assert.rejects(failing, full)
  assert.deepEqual(filesOf(at.shard), files)
  assert.deepEqual(readdirSync(join(at.directory, 'shards')), ['0'])
})

/** Returns names and contents, without LevelDB's event log. */
function filesOf(directory: string): [string, string][] {
  return readdirSync(directory)
    .toSorted()
    .map((name) => [name, readFileSync(join(directory, name), 'hex')])
}
