/** `postbote serve`: prepares the data directory and is the primary process of the server. */
import { join } from 'node:path'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { systemClock } from './clock.ts'
import { lockDirectory } from './cluster/directory-lock.ts'
import { describeAddress, type ListenAddress, type ListenerOptions } from './cluster/listener.ts'
import { type Primary, runPrimary } from './cluster/primary.ts'
import { defaultShards, defaultWorkers } from './cluster/shard-map.ts'
import { SharedMemory } from './cluster/shared-memory.ts'
import type { WorkerSettings } from './cluster/worker-app.ts'
import { type Config, ConfigError } from './config.ts'
import { isSocketPath } from './config-values.ts'
import { createLog } from './log.ts'
import { ensureAdminKey, prepareDataDirectory } from './store/data-directory.ts'

const workerFile = fileURLToPath(new URL('../workers/cluster-worker.js', import.meta.url))

/** Resolves when the server is ready; it then runs until a signal ends it. */
export async function serve(config: Config): Promise<Primary> {
  const log = createLog(config.logLevel)
  const cpus = availableParallelism()
  const data = await prepareDataDirectory({
    path: config.dir,
    shards: config.shards,
    shardsDefault: defaultShards(cpus),
  })
  const lock = lockDirectory(data.path)
  const workers = config.workers ?? defaultWorkers(cpus, data.shards)
  if (workers > data.shards) {
    throw new ConfigError([
      `--workers ${workers}: expected at most ${data.shards}, the number of shards of ${data.path}`,
    ])
  }
  const { key, warnings } = await ensureAdminKey({
    directory: data.path,
    keyFile: config.adminKeyFile,
  })
  for (const warning of [...data.warnings, ...warnings]) log.warn({}, warning)
  const regionPath = join(data.runPath, 'shared-memory')
  const memory = SharedMemory.create({
    path: regionPath,
    workers,
    shards: data.shards,
  })
  const settings: WorkerSettings = { config, dataDir: data.path, adminKey: key, regionPath }
  const primary = await runPrimary({
    clock: systemClock,
    log,
    listeners: listenersOf(config),
    workers,
    shards: data.shards,
    runDir: data.runPath,
    shardTable: memory,
    // Counters may be added to from anywhere; the primary has no place of its own.
    counters: memory.slot(0),
    workerFile,
    settings,
    exit: (code) => {
      lock.release()
      process.exit(code)
    },
  })
  const [bot, admin] = primary.addresses.map(({ address }) => describeAddress(address))
  log.info({ bot, private: admin, workers, shards: data.shards }, 'ready')
  return primary
}

function listenersOf(config: Config): ListenerOptions[] {
  return [
    { listener: 'bot', address: addressOf(config.httpIpAddress, config.httpPort) },
    { listener: 'private', address: addressOf(config.adminIpAddress, config.adminPort) },
  ]
}

function addressOf(place: string, port: number): ListenAddress {
  return isSocketPath(place) ? { path: place } : { host: place, port }
}
