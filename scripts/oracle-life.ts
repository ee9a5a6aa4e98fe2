/**
 * In which order the parts of a worker start and end: a real worker application in this process, with one shard, whose parts
 * note the calls that begin and end their work. A part that gets another name, or another method, gets it in `watched`, too,
 * and the commit says so.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AccessKeyRegistry } from '../src/access/access-key-registry.ts'
import { AuditTrail } from '../src/access/audit-trail.ts'
import { EndingSoon } from '../src/features/server/ending-soon.ts'
import { RelayOrigins } from '../src/features/relay/relay-origins.ts'
import { ShardChecker } from '../src/worker/shard-checker.ts'
import { ShardSet } from '../src/worker/shard-set.ts'
import { WebhookFactory } from '../src/worker/webhook-factory.ts'
import { WebhookStarter } from '../src/delivery/webhook-starter.ts'
import { prepareWorkerApp } from '../src/modules/worker-app.ts'
import { allFeatures, type FeatureLists } from '../src/modules/worker-modules.ts'
import { WorkerEvents } from '../src/features/events/worker-events.ts'
import { TokenRefusals } from '../src/admission/token-refusals.ts'
import { BotCache } from '../src/bots/bot-cache.ts'
import { ExpirySweeper } from '../src/bots/expiry-sweeper.ts'
import { Fleet } from '../src/features/fleet/fleet.ts'
import { IdempotencyKeySweeper } from '../src/bots/idempotency-key-sweeper.ts'
import { KeptSweeper } from '../src/features/look-back/kept-sweeper.ts'
import { RelayJobs } from '../src/features/relay/relay-jobs.ts'
import { ReplayJobs } from '../src/features/look-back/replay-jobs.ts'
import { systemClock } from '../src/kit/clock.ts'
import { Peers } from '../src/links/forward/peers.ts'
import { RequestRouter } from '../src/links/forward/request-router.ts'
import { Routes } from '../src/process/routes.ts'
import { ShardMap } from '../src/process/shard-map.ts'
import { MetricSlot } from '../src/process/shared-memory/metric-slot.ts'
import { SharedMemory } from '../src/process/shared-memory/shared-memory.ts'
import type { WorkerApp } from '../src/worker/worker.ts'
import { parseConfig } from '../src/config/config.ts'
import { AuditWriter } from '../src/access/audit-writer.ts'
import { KeySync } from '../src/access/key-sync.ts'
import { CheckPool } from '../src/queue/check/check-pool.ts'
import { CompressPool } from '../src/queue/compress-pool.ts'
import { prepareDataDirectory } from '../src/shard/data-directory.ts'
import { Shard } from '../src/shard/shard.ts'
import { levelEngine } from '../src/store/level/level-engine.ts'
import { silentLog } from '../test/support/kit/silent-log.ts'
import { temporaryRoot } from '../test/support/kit/temporary-root.ts'

/** The parts, with their methods that begin or end something. */
const watched: readonly (readonly [
  { readonly name: string; readonly prototype: object },
  string,
])[] = [
  [AccessKeyRegistry, 'reset close'],
  [AuditTrail, 'reset'],
  [AuditWriter, 'close'],
  [BotCache, 'addShard startWebhooks pauseDeliveries drain removeShard'],
  [CheckPool, 'close'],
  [CompressPool, 'close'],
  [EndingSoon, 'close'],
  [ExpirySweeper, 'close'],
  [Fleet, 'start forget close'],
  [IdempotencyKeySweeper, 'close'],
  [KeptSweeper, 'close'],
  [KeySync, 'start refresh close'],
  [MetricSlot, 'clearGauges'],
  [RelayJobs, 'start forget close'],
  [RelayOrigins, 'close'],
  [ReplayJobs, 'start forget close'],
  [RequestRouter, 'toSettling toElsewhere'],
  [Shard, 'open close'],
  [ShardChecker, 'close'],
  [ShardSet, 'open close'],
  [TokenRefusals, 'releaseAll'],
  [WebhookFactory, 'close'],
  [WebhookStarter, 'start forget close'],
  [WorkerEvents, 'deliver stopDelivery close'],
]

/** The calls of the primary in the life of a worker. */
const lives: Readonly<Record<string, readonly (keyof typeof calls)[]>> = {
  'a worker that ends with its server': ['open', 'drain', 'close'],
  'a worker that is replaced': ['open', 'settle', 'leave', 'finish', 'close'],
  'a worker that gives its shard away': ['open', 'leaveShard', 'drain', 'close'],
  'a worker that loses its shard': ['open', 'dropShard', 'drain', 'close'],
}

const noResponses = (): readonly never[] => []
const calls = {
  open: (app: WorkerApp) => app.open([{ shard: 0, boot: '' }]),
  drain: (app: WorkerApp) => app.drain(),
  settle: (app: WorkerApp) => app.settle(noResponses),
  leave: (app: WorkerApp) => app.leave(noResponses),
  finish: (app: WorkerApp) => app.finish(),
  leaveShard: (app: WorkerApp) => app.leaveShard(0, noResponses),
  dropShard: (app: WorkerApp) => app.dropShard(0),
  close: (app: WorkerApp) => app.close(),
}

/** Returns for each life the calls of the primary, and below each what the parts did then. */
export async function lifeOracle(): Promise<string> {
  const lines: string[] = []
  const restore = watched.flatMap(([part, methods]) =>
    methods.split(' ').map((method) => watch(part, method, (line) => lines.push(line))),
  )
  try {
    for (const [name, steps] of Object.entries(lives)) {
      lines.push(name)
      await live(steps, (step) => lines.push(`  ${step}`))
    }
  } finally {
    for (const end of restore) end()
  }
  return `${lines.join('\n')}\n`
}

/** Returns what ends the watching. */
function watch(
  { name, prototype }: (typeof watched)[number][0],
  method: string,
  note: (line: string) => void,
): () => void {
  const watchedMethod: unknown = Reflect.get(prototype, method)
  if (typeof watchedMethod !== 'function') throw new Error(`${name} has no method ${method}`)
  Reflect.set(prototype, method, function noted(this: unknown, ...args: unknown[]): unknown {
    note(`    ${name}.${method}`)
    return Reflect.apply(watchedMethod, this, args)
  })
  return () => void Reflect.set(prototype, method, watchedMethod)
}

async function live(
  steps: readonly (keyof typeof calls)[],
  note: (step: string) => void,
): Promise<void> {
  const directory = await mkdtemp(join(temporaryRoot, 'postbote-oracle-'))
  try {
    const app = await appIn(directory)
    for (const step of steps) {
      note(step)
      await calls[step](app)
    }
  } finally {
    await rm(directory, { recursive: true })
  }
}

/** Returns a worker application with one shard, in a data directory of its own. */
export async function appIn(
  directory: string,
  features: FeatureLists = allFeatures,
): Promise<WorkerApp> {
  const size = { workers: 1, shards: 1 }
  const data = await prepareDataDirectory({
    path: directory,
    shards: size.shards,
    shardsDefault: size.shards,
    files: levelEngine.files,
  })
  const regionPath = join(data.runPath, 'shared-memory')
  SharedMemory.create({ ...size, path: regionPath })
  const routes = new Routes(new ShardMap(size))
  const surroundings = { clock: systemClock, log: silentLog }
  const runDir = data.runPath
  const settings = {
    config: parseConfig({
      argv: ['--relay-from=https://example.com'],
      env: {},
      readFile: () => '',
    }),
    dataDir: data.path,
    addedTypes: [],
    adminKey: 'a'.repeat(40),
    eventSecrets: [],
    certificates: {},
    regionPath,
    store: undefined,
    startedAtMs: 0,
  }
  return prepareWorkerApp(
    {
      ...surroundings,
      start: { worker: 0, workers: 1, shardCount: 1, shards: [0], generation: 0, runDir, settings },
      settings,
      ways: {
        primary: { call: () => Promise.reject(new Error('there is no primary')) },
        peers: new Peers(surroundings, runDir, routes),
        routes,
      },
    },
    features,
  )
}
