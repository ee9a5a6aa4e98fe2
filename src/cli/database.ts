/**
 * `postbote database`: `init` makes the tables of a new cluster, `import` copies the shards of a data directory into them,
 * and `export` copies them into a new data directory. Keys and values are the same on both sides. A cluster may have
 * several databases, each with its part of the shards.
 */
import { rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitingClock } from '../clock.ts'
import { lockDirectory } from '../cluster/primary/directory-lock.ts'
import { Member } from '../cluster/membership/member.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { IdMark } from '../shard/id-mark.ts'
import { keyAfter } from '../shard/keys.ts'
import { shardPath } from '../shard/data-directory.ts'
import { readDirectoryRecord, writeDirectoryRecord } from '../shard/directory-record.ts'
import { databaseOfShard } from '../store/database-of-shard.ts'
import { exists } from '../store/exists.ts'
import { levelEngine } from '../store/level/level-engine.ts'
import { commitSchema, createSchema, newCluster } from '../store/postgres/create-schema.ts'
import { PgEngine } from '../store/postgres/pg-engine.ts'
import { PgNodes } from '../store/postgres/pg-nodes.ts'
import {
  type ClusterRow,
  holdRecords,
  setFormat,
  schemaFormat,
  unfinishedFormat,
} from '../store/postgres/cluster-row.ts'
import type { PgUrl } from '../store/postgres/pg-url.ts'
import type { OpenedStore, StoreEngine } from '../store/store-engine.ts'
import { makePrivateDirectory, syncDirectory } from '../store/write-file.ts'
import { createLog } from './log.ts'
import { bytesPerCopy, entriesPerCopy } from './limits.ts'
import { ProgressBar } from './progress-bar.ts'
import { databasesOf, readClusterRows, withDatabases } from './with-databases.ts'

const shardsDefault = 64

export async function database(
  action: 'init' | 'import' | 'export',
  config: Config,
): Promise<void> {
  const urls = databasesOf(config)
  if (action === 'init') await init(config, urls)
  else await copy(config, urls, action === 'import' ? importInto : exportFrom)
}

async function init(config: Config, urls: readonly PgUrl[]): Promise<void> {
  const { shards = shardsDefault } = config
  if (urls.length > shards) {
    throw new ConfigError([
      `--database: expected at most ${shards} databases, got ${urls.length}: each needs a shard`,
    ])
  }
  const rows = newCluster(shards, urls.length)
  await withDatabases(urls, async (forEach) => {
    await forEach(async (connection, number) => {
      const row = rows[number]
      if (row !== undefined) await createSchema(connection, row)
    })
    await forEach(commitSchema)
  })
  process.stdout.write(`cluster ${rows[0]?.id} with ${shards} shards in ${shownOf(urls)}\n`)
}

function shownOf(urls: readonly PgUrl[]): string {
  return urls.map(({ shown }) => shown).join(', ')
}

interface Copying {
  readonly directory: string
  readonly urls: readonly PgUrl[]
  /** The rows of the databases. */
  readonly rows: readonly ClusterRow[]
  readonly shards: number
  /** Opens a shard in its database. */
  readonly open: (shard: number) => Promise<OpenedStore>
}

/** Keeps servers away from both sides while `work` copies. */
async function copy(
  config: Config,
  urls: readonly PgUrl[],
  work: (copying: Copying) => Promise<void>,
): Promise<void> {
  const rows = await readClusterRows(urls)
  const shards = rows[0]?.shards ?? 0
  const directory = config.dir
  if (work === importInto && !(await exists(directory))) throw noDataDirectory(directory)
  await makePrivateDirectory(directory)
  const lock = lockDirectory(directory)
  const engine = new PgEngine({ databases: urls, node: nodeName, bytesMax: undefined })
  /** The life of this process in each database. */
  const boots = new Map<number, string>()
  const members = urls.map((url, number) => memberOf(url, (boot) => boots.set(number, boot)))
  const openOne = (shard: number): Promise<OpenedStore> =>
    open(engine, directory, { shard, boot: boots.get(databaseOfShard(shard, urls.length)) })
  try {
    for (const member of members) await member.start()
    await work({ directory, urls, rows, shards, open: openOne })
  } finally {
    await Promise.all(members.map((member) => member.leave()))
    lock.release()
  }
}

const nodeName = 'postbote database'

function memberOf(url: PgUrl, onBoot: (boot: string) => void): Member {
  return new Member({
    clock: waitingClock,
    log: createLog('warn'),
    table: new PgNodes(url, nodeName),
    node: { name: nodeName, address: '', workers: 0 },
    onJoined: (self) => onBoot(self.boot),
    // Whoever evicted it uses the database now.
    onEvicted: () => process.exit(1),
    onRefused: () => process.exit(1),
  })
}

async function importInto(copying: Copying): Promise<void> {
  const { directory, urls, rows, shards } = copying
  const record = await readDirectoryRecord(directory)
  if (record === undefined) throw noDataDirectory(directory)
  if (record.shards !== shards) {
    throw new ConfigError([
      `--dir: ${directory} has ${record.shards} shards, and ${shownOf(urls)} has ${shards}`,
    ])
  }
  const full = new Set<PgUrl>()
  await withDatabases(urls, (forEach) =>
    forEach(async (connection, number) => {
      const [url, row] = [urls[number], rows[number]]
      if (url !== undefined && row !== undefined && (await holdRecords(connection, row)))
        full.add(url)
    }),
  )
  if (full.size > 0) {
    throw new Error(`${shownOf([...full])} is not empty: import into a new database`)
  }
  // What is wrong with a shard is found before anything is changed.
  for (let shard = 0; shard < shards; shard++) {
    const { store } = await openSound(directory, shard)
    await store.close()
  }
  const setFormats = (format: number): Promise<void> =>
    withDatabases(urls, (forEach) => forEach((connection) => setFormat(connection, format)))
  // A server refuses this format: half of an import must not be served.
  await setFormats(unfinishedFormat)
  const entries = await copyShards(shards, {
    from: (shard) => openSound(directory, shard),
    to: copying.open,
  })
  await setFormats(schemaFormat)
  process.stdout.write(`${entries} records of ${shards} shards were copied into ${shownOf(urls)}\n`)
}

function noDataDirectory(directory: string): ConfigError {
  return new ConfigError([`--dir: expected a data directory, got ${directory}`])
}

async function exportFrom({ directory, urls, shards, open: from }: Copying): Promise<void> {
  if (await exists(join(directory, 'shards'))) {
    throw new ConfigError([`--dir: expected a new directory, but ${directory} has shards`])
  }
  // A server refuses a directory whose shards are missing: half of an export must not be served.
  const unfinished = join(directory, 'unfinished-export')
  await rm(unfinished, { recursive: true, force: true })
  await writeDirectoryRecord(directory, { shards, isMade: true })
  for (let shard = 0; shard < shards; shard++) {
    await levelEngine.files.makeNew(shardPath(unfinished, shard))
  }
  const entries = await copyShards(shards, {
    from,
    to: (shard) => open(levelEngine, unfinished, { shard }),
  })
  await rename(join(unfinished, 'shards'), join(directory, 'shards'))
  await syncDirectory(directory)
  await rmdir(unfinished)
  process.stdout.write(
    `${entries} records of ${shards} shards were copied from ${shownOf(urls)} into ${directory}\n`,
  )
}

interface Sides {
  readonly from: (shard: number) => Promise<OpenedStore>
  readonly to: (shard: number) => Promise<OpenedStore>
}

/** Returns the number of records. */
async function copyShards(shards: number, { from, to }: Sides): Promise<number> {
  const bar = new ProgressBar()
  let entries = 0
  for (let shard = 0; shard < shards; shard++) {
    bar.show('copying shards', shard, shards)
    const source = await from(shard)
    try {
      const target = await to(shard)
      try {
        entries += await copyShard(source, target)
      } finally {
        await target.store.close()
      }
    } finally {
      await source.store.close()
    }
  }
  bar.clear()
  return entries
}

async function copyShard(
  { store: source }: OpenedStore,
  { store: target }: OpenedStore,
): Promise<number> {
  let copied = 0
  let gte: Buffer = Buffer.from([0])
  const lt = Buffer.from([0xff])
  for (;;) {
    const entries = await source.range({
      gte,
      lt,
      limit: entriesPerCopy,
      valueBytesMax: bytesPerCopy,
    })
    const last = entries.at(-1)
    if (last === undefined) return copied
    await target.write(
      entries.map((entry) => ({ type: 'put', ...entry })),
      { sync: true },
    )
    copied += entries.length
    gte = keyAfter(last.key)
  }
}

async function open(
  engine: StoreEngine,
  directory: string,
  { shard, boot }: { readonly shard: number; readonly boot?: string | undefined },
): Promise<OpenedStore> {
  const opened = await engine.open({
    shard,
    boot,
    directory: shardPath(directory, shard),
    clock: waitingClock,
    log: createLog('warn'),
  })
  await opened.store.open()
  return opened
}

/** A shard that lost records has ids that are not certain, and only its own server can settle that. */
async function openSound(directory: string, shard: number): Promise<OpenedStore> {
  const opened = await open(levelEngine, directory, { shard })
  const { isDistrusted } = await IdMark.read({ directory, shard })
  if (!opened.hasLost && !isDistrusted) return opened
  await opened.store.close()
  throw new Error(
    `shard ${shard} of ${directory} lost records: run postbote repair, and start the server once, so that it counts anew`,
  )
}
