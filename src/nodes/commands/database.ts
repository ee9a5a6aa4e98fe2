/**
 * `postbote database`: `init` makes the tables of a new cluster, `import` copies the shards of a data directory into them,
 * and `export` copies them into a new data directory. Keys and values are the same on both sides. A cluster may have
 * several databases, each with its part of the shards.
 */
import { shownUrls } from '../../api/pg-url.ts'
import { bytesPerCopy, entriesPerCopy } from '../../cli/limits.ts'
import { ProgressBar } from '../../cli/output/progress-bar.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { fillDirectory, openFiles } from '../../features/backup/fill-directory.ts'
import { counted } from '../../kit/text/counted.ts'
import { lockDirectory } from '../../process/primary/directory-lock.ts'
import { shardPath } from '../../shard/data-directory.ts'
import { IdMark } from '../../shard/id-mark.ts'
import { readDirectoryRecord } from '../../shard/records/directory-record.ts'
import { keyAfter } from '../../shard/records/record-keys.ts'
import { exists } from '../../store/read-if-there.ts'
import type { OpenedStore } from '../../store/store-engine.ts'
import { commitSchema, createSchema, newCluster } from '../postgres/create-schema.ts'
import {
  assertEmpty,
  type ClusterDatabases,
  fillDatabases,
  useDatabases,
} from './cluster-databases.ts'
import { databasesOf, readClusterRows, withDatabases } from './with-databases.ts'

const shardsDefault = 64

export async function initDatabases(config: Config): Promise<void> {
  const urls = databasesOf(config)
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
  process.stdout.write(
    `cluster ${rows[0]?.id} with ${counted(shards, 'shard')} in ${shownUrls(urls)}\n`,
  )
}

export async function importIntoDatabases(config: Config): Promise<void> {
  const urls = databasesOf(config)
  const directory = config.dir
  // The error of a database comes before those of the directory.
  await readClusterRows(urls)
  if (!(await exists(directory))) throw noDataDirectory(directory)
  const lock = lockDirectory(directory)
  try {
    await useDatabases(urls, (cluster) => importInto(cluster, directory))
  } finally {
    lock.release()
  }
}

async function importInto(cluster: ClusterDatabases, directory: string): Promise<void> {
  const { urls, shards, open: to } = cluster
  const record = await readDirectoryRecord(directory)
  if (record === undefined) throw noDataDirectory(directory)
  if (record.shards !== shards) {
    throw new ConfigError([
      `--dir: ${directory} has ${counted(record.shards, 'shard')}, and ${shownUrls(urls)} has ${shards}`,
    ])
  }
  const types = typesInto(cluster, record.types)
  await assertEmpty(cluster)
  // What is wrong with a shard is found before anything is changed.
  for (let shard = 0; shard < shards; shard++) {
    const { store } = await openSound(directory, shard)
    await store.close()
  }
  const entries = await fillDatabases(cluster, types, () =>
    copyShards(shards, { from: (shard) => openSound(directory, shard), to }),
  )
  process.stdout.write(
    `${counted(entries, 'record')} of ${counted(shards, 'shard')} copied into ${shownUrls(urls)}\n`,
  )
}

/** Records are copied as they are, so the types must have the same numbers. */
function typesInto({ urls, rows }: ClusterDatabases, types: readonly string[]): readonly string[] {
  const known = rows[0]?.types ?? []
  if (known.every((type, nth) => type === types[nth])) return types
  throw new ConfigError([
    `--database: ${shownUrls(urls)} has the added types ${known.join(', ')}, and the directory ${types.join(', ') || 'none'}: create the databases anew`,
  ])
}

function noDataDirectory(directory: string): ConfigError {
  return new ConfigError([`--dir: expected a data directory, got ${directory}`])
}

export async function exportDatabases(config: Config): Promise<void> {
  const urls = databasesOf(config)
  const directory = config.dir
  await useDatabases(urls, async ({ rows, shards, open: from }) => {
    const types = rows[0]?.types ?? []
    const filled = { directory, shards, types, refused: ['shards'] }
    const entries = await fillDirectory(filled, (target) =>
      copyShards(shards, { from, to: (shard) => target.open(shard) }),
    )
    process.stdout.write(
      `${counted(entries, 'record')} of ${counted(shards, 'shard')} copied from ${shownUrls(urls)} into ${directory}\n`,
    )
  })
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

/** A shard that lost records has ids that are not certain, and only its own server can settle that. */
async function openSound(directory: string, shard: number): Promise<OpenedStore> {
  const opened = await openFiles(shardPath(directory, shard), shard)
  const { isDistrusted } = await IdMark.read({ directory, shard })
  if (!opened.hasLost && !isDistrusted) return opened
  await opened.store.close()
  throw new Error(
    `shard ${shard} of ${directory} lost records: run postbote repair, and start the server once, so that it counts anew`,
  )
}
