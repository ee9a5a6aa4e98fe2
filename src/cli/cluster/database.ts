/**
 * `postbote database`: `init` makes the tables of a new cluster, `import` copies the shards of a data directory into them,
 * and `export` copies them into a new data directory. Keys and values are the same on both sides. A cluster may have
 * several databases, each with its part of the shards.
 */
import { rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitingClock } from '../../clock.ts'
import { lockDirectory } from '../../cluster/primary/directory-lock.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { IdMark } from '../../shard/id-mark.ts'
import { keyAfter } from '../../shard/keys.ts'
import { shardPath } from '../../shard/data-directory.ts'
import { readDirectoryRecord, writeDirectoryRecord } from '../../shard/directory-record.ts'
import { exists } from '../../store/exists.ts'
import { levelEngine } from '../../store/level/level-engine.ts'
import { commitSchema, createSchema, newCluster } from '../../store/postgres/create-schema.ts'
import type { PgUrl } from '../../store/postgres/pg-url.ts'
import type { OpenedStore } from '../../store/store-engine.ts'
import { makePrivateDirectory, syncDirectory } from '../../store/write-file.ts'
import {
  assertEmpty,
  type ClusterDatabases,
  fillDatabases,
  shownUrls,
  useDatabases,
} from './cluster-databases.ts'
import { createLog } from '../output/log.ts'
import { bytesPerCopy, entriesPerCopy } from '../limits.ts'
import { ProgressBar } from '../output/progress-bar.ts'
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
  process.stdout.write(`cluster ${rows[0]?.id} with ${shards} shards in ${shownUrls(urls)}\n`)
}

interface Copying extends ClusterDatabases {
  readonly directory: string
}

/** Keeps servers away from both sides while `work` copies. */
async function copy(
  config: Config,
  urls: readonly PgUrl[],
  work: (copying: Copying) => Promise<void>,
): Promise<void> {
  const directory = config.dir
  // The error of a database comes before those of the directory.
  await readClusterRows(urls)
  if (work === importInto && !(await exists(directory))) throw noDataDirectory(directory)
  await makePrivateDirectory(directory)
  const lock = lockDirectory(directory)
  try {
    await useDatabases(urls, (databases) => work({ ...databases, directory }))
  } finally {
    lock.release()
  }
}

async function importInto(copying: Copying): Promise<void> {
  const { directory, urls, shards } = copying
  const record = await readDirectoryRecord(directory)
  if (record === undefined) throw noDataDirectory(directory)
  if (record.shards !== shards) {
    throw new ConfigError([
      `--dir: ${directory} has ${record.shards} shards, and ${shownUrls(urls)} has ${shards}`,
    ])
  }
  await assertEmpty(copying)
  // What is wrong with a shard is found before anything is changed.
  for (let shard = 0; shard < shards; shard++) {
    const { store } = await openSound(directory, shard)
    await store.close()
  }
  const entries = await fillDatabases(copying, () =>
    copyShards(shards, {
      from: (shard) => openSound(directory, shard),
      to: copying.open,
    }),
  )
  process.stdout.write(
    `${entries} records of ${shards} shards were copied into ${shownUrls(urls)}\n`,
  )
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
    to: (shard) => openFiles(unfinished, shard),
  })
  await rename(join(unfinished, 'shards'), join(directory, 'shards'))
  await syncDirectory(directory)
  await rmdir(unfinished)
  process.stdout.write(
    `${entries} records of ${shards} shards were copied from ${shownUrls(urls)} into ${directory}\n`,
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

async function openFiles(directory: string, shard: number): Promise<OpenedStore> {
  const opened = await levelEngine.open({
    shard,
    directory: shardPath(directory, shard),
    clock: waitingClock,
    log: createLog('warn'),
  })
  await opened.store.open()
  return opened
}

/** A shard that lost records has ids that are not certain, and only its own server can settle that. */
async function openSound(directory: string, shard: number): Promise<OpenedStore> {
  const opened = await openFiles(directory, shard)
  const { isDistrusted } = await IdMark.read({ directory, shard })
  if (!opened.hasLost && !isDistrusted) return opened
  await opened.store.close()
  throw new Error(
    `shard ${shard} of ${directory} lost records: run postbote repair, and start the server once, so that it counts anew`,
  )
}
