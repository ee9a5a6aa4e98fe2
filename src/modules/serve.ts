/** `postbote serve`: prepares the data directory and becomes the primary process of the server. */
import { join, resolve } from 'node:path'
import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { fileURLToPath } from 'node:url'
import { givenTypes } from '../kit/added-type.ts'
import { systemClock } from '../kit/clock.ts'
import { type EventLog, openEventLog } from '../process/event-log.ts'
import { lockDirectory } from '../process/primary/directory-lock.ts'
import type { ListenerOptions } from '../http/listener.ts'
import { type Primary, runPrimary } from '../process/primary/primary.ts'
import { defaultShards, defaultWorkers } from '../process/shard-map.ts'
import { recordHistory } from '../process/server-history.ts'
import { SharedMemory } from '../process/shared-memory/shared-memory.ts'
import { readEventSecrets } from '../features/events/event-secrets.ts'
import {
  CertificateError,
  certificateWarnings,
  readCertificates,
} from '../worker/read-certificates.ts'
import type { WorkerSettings } from './worker-app.ts'
import type { Log } from '../kit/surroundings.ts'
import { JoinedDatabases } from '../nodes/commands/joined-databases.ts'
import {
  networkOfProcess,
  openCommandSocket,
  type ServerStatus,
} from '../cli/serve/command-socket.ts'
import { clusterPortProblems } from '../config/cluster-config.ts'
import { type Config, ConfigError, reloadedConfig } from '../config/config.ts'
import { entryFiles } from '../entry-files.ts'
import { addressElsewhere, listenersOf } from '../cli/serve/listeners-of.ts'
import { LogOfServer } from '../cli/output/log.ts'
import {
  type DataDirectory,
  ensureAdminKey,
  prepareDataDirectory,
} from '../shard/data-directory.ts'
import { engineOf } from '../nodes/engine-of.ts'
import { makePrivateDirectory } from '../store/write-file.ts'
import { sendDatagram } from '../../native-bindings/send-datagram.ts'
import { ServiceManager } from '../cli/serve/service-manager.ts'

/** Resolves when the server is ready; it then runs until a signal ends it. `readAgain` reads the options for a reload. */
export async function serve(config: Config, readAgain: () => Config): Promise<Primary> {
  keepHeapSmall()
  const stopEndingEarly = endFirstProcessAtSignal()
  const directory = resolve(config.dir)
  await makePrivateDirectory(directory)
  const { log, manager, logOfServer } = surroundingsOf(config)
  const lock = lockDirectory(directory)
  const joined = await JoinedDatabases.open(config, directory, lock, { clock: systemClock, log })
  const { data, workers } = await prepared(config, directory, joined)
  const adminKey = await adminKeyOf(config, data, log)
  const settings = settingsOf({ config, data, adminKey, joined, log })
  const memory = recordedMemory({ path: settings.regionPath, workers, shards: data.shards })
  // Any process may add to counters. The primary has no slot, so it uses one of worker 0.
  const counters = memory.slot(0)
  const node = joined?.engine.node
  const eventLog = await openEventLog({ directory, clock: systemClock, counters, node, log })
  let primary: Primary | undefined
  let current = settings
  const bound: ListenerOptions[] = []
  const closeCommands = await openCommandSocket({
    directory: data.path,
    runPath: data.runPath,
    status: () => ({ ...statusOf(primary, bound), ...optionsShown(current.config) }),
    reload: (onStep) => reloadOf(primary, logOfServer, onStep),
  })
  const exit = async (code: number): Promise<void> => {
    await joined?.leave()
    await eventLog.close()
    closeCommands()
    lock.release()
    process.exit(code)
  }
  const joining = joined?.start({
    adminKey,
    workers,
    onClock: (...reading) => memory.setClock(...reading),
    onLease: (...lease) => memory.setLease(...lease),
    onEnd: (code) => void (code === 0 ? primary?.end() : exit(code)),
  })
  // An open socket would keep the process alive.
  joining?.catch(closeCommands)
  await joining
  const starting = runPrimary({
    clock: systemClock,
    log,
    listeners: listenersOf(config),
    workers,
    shards: data.shards,
    runDir: data.runPath,
    shardTable: memory,
    counters,
    workerFile: fileURLToPath(entryFiles.worker),
    events: eventLog.events,
    settings,
    ...joined?.forPrimary,
    newSettings: () =>
      (current = reloadedSettings({ settings, log, readAgain, events: eventLog.events })),
    onListening: (listener) => bound.push(listener),
    onPhase: (phase) => manager.goesOn(phase),
    reopenLog: () => logOfServer.reopen(),
    exit: (code) => void exit(code),
  })
  // The primary obeys signals from now on.
  stopEndingEarly()
  // If the server does not start, its pid file is removed.
  starting.catch(() => {
    closeCommands()
    void joined?.leave()
  })
  primary = await starting
  await joined?.begin(primary.shards)
  tellReady(primary, { log, manager, workers, shards: data.shards })
  return primary
}

function recordedMemory(options: Parameters<typeof SharedMemory.create>[0]): SharedMemory {
  const memory = SharedMemory.create(options)
  recordHistory(systemClock, memory)
  return memory
}

function tellReady(
  primary: Primary,
  as: {
    readonly log: Log
    readonly manager: ServiceManager
    readonly workers: number
    readonly shards: number
  },
): void {
  const { log, manager, workers, shards } = as
  const { bot, private: admin } = statusOf(primary, primary.addresses)
  log.info({ bot, private: admin, workers, shards }, 'ready')
  manager.ready(`Serving bots at ${bot} and producers at ${admin}, workers: ${workers}`)
}

/** Where the log goes, and what started this process. */
function surroundingsOf(config: Config): {
  readonly log: LogOfServer['log']
  readonly manager: ServiceManager
  readonly logOfServer: LogOfServer
} {
  const logOfServer = new LogOfServer()
  logOfServer.use(config)
  const { log } = logOfServer
  const { env, pid } = process
  const manager = new ServiceManager({ clock: systemClock, log, env, pid, send: sendDatagram })
  manager.starting()
  return { log, manager, logOfServer }
}

function settingsOf(from: {
  readonly config: Config
  readonly data: DataDirectory
  readonly adminKey: string
  readonly joined: JoinedDatabases | undefined
  readonly log: Log
}): WorkerSettings {
  const { config, data, adminKey, joined, log } = from
  return {
    config,
    dataDir: data.path,
    addedTypes: joined?.types ?? data.types,
    adminKey,
    eventSecrets: readEventSecrets(config),
    certificates: certificatesOf(config, log),
    regionPath: join(data.runPath, 'shared-memory'),
    store: joined?.engine,
    startedAtMs: systemClock.machineMs(),
  }
}

async function adminKeyOf(config: Config, data: DataDirectory, log: Log): Promise<string> {
  const { key, warnings } = await ensureAdminKey(data.path, config.adminKeyFile)
  for (const warning of [...data.warnings, ...warnings]) log.warn({}, warning)
  return key
}

function certificatesOf(config: Config, log: Log): WorkerSettings['certificates'] {
  const certificates = readCertificates(config)
  const warnings = certificateWarnings(config, certificates, systemClock.nowMs())
  for (const warning of warnings) log.warn({}, warning)
  return certificates
}

/** The operator may have automated reloads, and not read the log. */
function reportingRefusal<T>(events: EventLog, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof CertificateError) {
      const timeMs = systemClock.nowMs()
      events.report({ type: 'certificate.refused', timeMs, reason: error.message })
    }
    throw error
  }
}

function reloadedSettings(options: {
  readonly settings: WorkerSettings
  readonly log: LogOfServer['log']
  readonly readAgain: () => Config
  readonly events: EventLog
}): WorkerSettings {
  const { settings, log, readAgain, events } = options
  const { config, needRestart } = reloadedConfig(settings.config, readAgain())
  const eventSecrets = readEventSecrets(config)
  const certificates = reportingRefusal(events, () => certificatesOf(config, log))
  for (const name of needRestart) {
    log.warn({}, `--${name} has changed; the change takes effect after a restart`)
  }
  log.level = config.logLevel
  return { ...settings, config, eventSecrets, certificates }
}

/** Prepares the data directory, and decides on the number of workers. */
async function prepared(
  config: Config,
  directory: string,
  joined: JoinedDatabases | undefined,
): Promise<{ readonly data: DataDirectory; readonly workers: number }> {
  const cpus = availableParallelism()
  const { files } = await engineOf(joined?.engine)
  const data = await prepareDataDirectory({
    path: directory,
    shards: joined?.shards ?? config.shards,
    shardsDefault: defaultShards(cpus),
    files,
    types: joined === undefined ? givenTypes(config) : undefined,
  })
  const { workers = defaultWorkers(cpus, data.shards) } = config
  const problems = clusterPortProblems(config, workers)
  if (problems.length > 0) throw new ConfigError([...problems])
  if (workers <= data.shards) return { data, workers }
  throw new ConfigError([
    `--workers ${workers}: expected at most ${data.shards}, the number of shards of ${joined === undefined ? data.path : 'the database'}`,
  ])
}

async function reloadOf(
  primary: Primary | undefined,
  log: LogOfServer,
  onStep: (step: string) => void,
): Promise<void> {
  if (primary === undefined) throw new Error('the server is still starting')
  const unwatch = log.watch(onStep)
  try {
    await primary.reload()
  } finally {
    unwatch()
  }
}

/** Says what commands need to know besides the addresses. */
function optionsShown({ adminCert, local }: Config): Partial<ServerStatus> {
  return { isPrivateTls: adminCert !== undefined, network: networkOfProcess(), local }
}

function statusOf(primary: Primary | undefined, bound: Primary['addresses']): ServerStatus {
  const { pid } = process
  const [bot, admin] = bound.map(({ address }) => addressElsewhere(address))
  if (primary === undefined) return { pid, state: 'starting', bot, private: admin }
  return { pid, state: 'ready', bot, private: admin, workerPids: primary.workerPids() }
}

/**
 * Keeps the heap of the primary small.
 *
 * Every connection passes through it, and leaves some 3 kB of objects of node:net that have become old before they can be
 * collected. V8 would double its memory for young objects, up to 32 MiB, and would look at old ones only when the heap is
 * several times as large as at the start, or after 20 s. Here it keeps the memory for young ones at a few megabytes, and
 * begins to collect old ones, beside the program, after a fifth of that growth. With 10,000 polls that start to wait, the
 * primary took 3.8 kB for each, with the first setting 3.4, and with both 1.4, at the same CPU time per connection
 * (1.01 in five pairs; 1.09 after a tenth of the growth).
 *
 * `--max-semi-space-size` has the same effect as the first and is documented, but Node reads it only at the start of a
 * process. Workers have it (process/primary/worker-child.ts).
 */
function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--incremental-marking-soft-trigger=20')
}

/**
 * The first process of a container, process 1, has no default action for signals: without a listener it would ignore a
 * SIGTERM while the server starts, for example while it waits for its database. Nothing is served yet, so it ends at once.
 */
const endSignals = { SIGTERM: 143, SIGINT: 130 } as const

/** Returns a function that takes this back, for when the server obeys signals itself. Other processes need nothing. */
function endFirstProcessAtSignal(): () => void {
  if (process.pid !== 1) return () => undefined
  const listeners = Object.entries(endSignals).map(
    ([signal, code]) => [signal, () => process.exit(code)] as const,
  )
  for (const [signal, listener] of listeners) process.on(signal, listener)
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener)
  }
}
