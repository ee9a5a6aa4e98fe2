/**
 * `postbote database`: `init` makes the tables of a new cluster, `import` copies the shards of a data directory into them,
 * and `export` copies them into a new data directory. Keys and values are the same on both sides.
 */
import { randomBytes } from 'node:crypto'
import { rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitingClock } from '../clock.ts'
import { lockDirectory } from '../cluster/primary/directory-lock.ts'
import { Heartbeat } from '../cluster/membership/heartbeat.ts'
import { joinCluster } from '../cluster/membership/join.ts'
import { type Config, ConfigError } from '../config/config.ts'
import { IdMark } from '../shard/id-mark.ts'
import { keyAfter } from '../shard/keys.ts'
import { shardPath } from '../shard/data-directory.ts'
import { readDirectoryRecord, writeDirectoryRecord } from '../shard/directory-record.ts'
import { exists } from '../store/exists.ts'
import { levelEngine } from '../store/level/level-engine.ts'
import { createSchema } from '../store/postgres/create-schema.ts'
import { PgEngine } from '../store/postgres/pg-engine.ts'
import { PgNodes } from '../store/postgres/pg-nodes.ts'
import {
  holdRecords,
  readCluster,
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
import { databaseOf, withDatabase } from './with-database.ts'

const shardsDefault = 64

export async function database(
  argv: readonly string[],
  configOf: (argv: readonly string[]) => Config,
): Promise<void> {
  const [action, ...rest] = argv
  const config = configOf(rest)
  const url = databaseOf(config)
  if (action === 'init') await init(config, url)
  else if (action === 'import') await copy(config, url, importInto)
  else if (action === 'export') await copy(config, url, exportFrom)
  else throw new ConfigError(['postbote database: expected init, import or export'])
}

async function init(config: Config, url: PgUrl): Promise<void> {
  await withDatabase(url, async (connection) => {
    const { id, shards } = await createSchema(connection, config.shards ?? shardsDefault)
    process.stdout.write(`cluster ${id} with ${shards} shards in ${url.shown}\n`)
  })
}

interface Copying {
  readonly directory: string
  readonly url: PgUrl
  readonly shards: number
  readonly engine: PgEngine
}

/** Keeps servers away from both sides while `work` copies. */
async function copy(
  config: Config,
  url: PgUrl,
  work: (copying: Copying) => Promise<void>,
): Promise<void> {
  const { shards } = await withDatabase(url, readCluster)
  const directory = config.dir
  if (work === importInto && !(await exists(directory))) throw noDataDirectory(directory)
  await makePrivateDirectory(directory)
  const lock = lockDirectory(directory)
  const self = {
    name: 'postbote database',
    boot: randomBytes(8).toString('hex'),
    address: '',
    workers: 0,
  }
  const table = new PgNodes(url, self.boot)
  const log = createLog('warn')
  try {
    await joinCluster({ clock: waitingClock, log, table, self, lastBoot: undefined })
  } catch (error) {
    // An open connection would keep the process alive.
    table.close()
    throw error
  }
  const heartbeat = new Heartbeat({
    clock: waitingClock,
    log,
    table,
    self,
    onLease: ignore,
    onEvicted: () => process.exit(1),
  })
  try {
    await heartbeat.start()
    const engine = new PgEngine({
      database: url,
      node: self.name,
      boot: self.boot,
      bytesMax: undefined,
    })
    await work({ directory, url, shards, engine })
  } finally {
    heartbeat.close()
    // If the database is away, the row stands still, and whoever comes next removes it.
    await table.leave(self).catch(ignore)
    table.close()
    lock.release()
  }
}

async function importInto({ directory, url, shards, engine }: Copying): Promise<void> {
  const record = await readDirectoryRecord(directory)
  if (record === undefined) throw noDataDirectory(directory)
  if (record.shards !== shards) {
    throw new ConfigError([
      `--dir: ${directory} has ${record.shards} shards, and ${url.shown} has ${shards}`,
    ])
  }
  if (await withDatabase(url, (connection) => holdRecords(connection, shards))) {
    throw new Error(`${url.shown} is not empty: import into a new database`)
  }
  // What is wrong with a shard is found before anything is changed.
  for (let shard = 0; shard < shards; shard++) {
    const { store } = await openSound(directory, shard)
    await store.close()
  }
  // A server refuses this format: half of an import must not be served.
  await withDatabase(url, (connection) => setFormat(connection, unfinishedFormat))
  const entries = await copyShards(shards, {
    from: (shard) => openSound(directory, shard),
    to: (shard) => open(engine, directory, shard),
  })
  await withDatabase(url, (connection) => setFormat(connection, schemaFormat))
  process.stdout.write(`${entries} records of ${shards} shards were copied into ${url.shown}\n`)
}

function noDataDirectory(directory: string): ConfigError {
  return new ConfigError([`--dir: expected a data directory, got ${directory}`])
}

async function exportFrom({ directory, url, shards, engine }: Copying): Promise<void> {
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
    from: (shard) => open(engine, directory, shard),
    to: (shard) => open(levelEngine, unfinished, shard),
  })
  await rename(join(unfinished, 'shards'), join(directory, 'shards'))
  await syncDirectory(directory)
  await rmdir(unfinished)
  process.stdout.write(
    `${entries} records of ${shards} shards were copied from ${url.shown} into ${directory}\n`,
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

async function open(engine: StoreEngine, directory: string, shard: number): Promise<OpenedStore> {
  const opened = await engine.open({
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
  const opened = await open(levelEngine, directory, shard)
  const { isDistrusted } = await IdMark.read({ directory, shard })
  if (!opened.hasLost && !isDistrusted) return opened
  await opened.store.close()
  throw new Error(
    `shard ${shard} of ${directory} lost records: run postbote repair, and start the server once, so that it counts anew`,
  )
}

function ignore(): void {
  // Nothing is served during a copy, and its end is not certain anyway.
}
