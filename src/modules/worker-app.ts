/**
 * Puts a worker together: its shards, its bots and the two APIs, according to the options of the server. All layers below
 * get what they need from here and do not know about processes.
 */
import { randomInt } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { PortalFrame } from '../access/portal-frame.ts'
import { PrivateApiGuard } from '../access/private-api-guard.ts'
import type { WorkerKeys } from '../access/worker-keys.ts'
import { BodyFilter } from '../admission/body-filter.ts'
import { type BodyBudgets, bodyBudgets } from '../admission/budgets/body-budgets.ts'
import type { BudgetGate } from '../admission/budgets/budget-gate.ts'
import { holdConnection, streamPlace } from '../admission/connections/client-connections.ts'
import { TokenRefusals } from '../admission/token-refusals.ts'
import type { CallTable } from '../api/call-table.ts'
import { isServed } from '../api/token.ts'
import { type BotApi, createBotApi } from '../bot-api/bot-api.ts'
import { UpdatesReply } from '../bot-api/get-updates.ts'
import type { UpstreamServices } from '../bot-api/upstream-services.ts'
import type { BotCache } from '../bots/bot-cache.ts'
import { BotFinder } from '../bots/bot-finder.ts'
import { ExpirySweeper } from '../bots/expiry-sweeper.ts'
import { IdempotencyKeySweeper } from '../bots/idempotency-key-sweeper.ts'
import { BotRegistry } from '../bots/registry.ts'
import type { Config } from '../config/config.ts'
import { otlpSettings } from '../config/otlp-settings.ts'
import { type WorkerEvents, workerEvents } from '../features/events/worker-events.ts'
import { KeptSweeper } from '../features/look-back/kept-sweeper.ts'
import { EndingSoon } from '../features/server/ending-soon.ts'
import { SpanExporter } from '../features/tracing/span-exporter.ts'
import { type ClientOf, clientsBy } from '../http/client.ts'
import { requestOrigin } from '../http/connection-origin.ts'
import { pipelinedPerTurnMax } from '../http/limits.ts'
import type { ListenerCertificates } from '../http/listener.ts'
import type { AddedType } from '../kit/added-type.ts'
import type { Clock } from '../kit/clock.ts'
import { delayedRefusalsPerWorkerMax } from '../kit/limits.ts'
import { Modules } from '../kit/modules.ts'
import type { Counters, Log } from '../kit/surroundings.ts'
import { Tracer } from '../kit/tracing/tracer.ts'
import { setAddedTypes } from '../kit/update-types.ts'
import { workerHeader } from '../links/forward/forward-headers.ts'
import { RequestRouter } from '../links/forward/request-router.ts'
import { type EngineSettings, engineOf } from '../nodes/engine-of.ts'
import type { WorkerStart } from '../process/channel/worker-control.ts'
import { workerConnectionLimit } from '../process/connection-limit.ts'
import { loopDelayOf } from '../process/loop-delay.ts'
import { ShardMap } from '../process/shard-map.ts'
import type { MetricSlot } from '../process/shared-memory/metric-slot.ts'
import { SharedMemory } from '../process/shared-memory/shared-memory.ts'
import type { CheckPool } from '../queue/check/check-pool.ts'
import type { CompressPool } from '../queue/compress-pool.ts'
import type { Retention } from '../queue/kept/left-update.ts'
import { QueueLevels } from '../queue/queue-limits.ts'
import { WindowBudget } from '../queue/window/window.ts'
import { keysShard } from '../shard/records/access-key-record.ts'
import { ShardMarks } from '../shard/recovery/shard-marks.ts'
import { ShardDamaged } from '../store/shard-damaged.ts'
import type { StoreEngine, StoreSpace } from '../store/store-engine.ts'
import type { VerifyThread } from '../store/store-files.ts'
import { Databases } from '../worker/databases.ts'
import type { WorkerModule } from '../worker/module.ts'
import { ownNode, version } from '../worker/own-node.ts'
import { reachOwners } from '../worker/reach-owners.ts'
import { readinessOf } from '../worker/readiness.ts'
import { ShardChecker } from '../worker/shard-checker.ts'
import { WebhookFactory } from '../worker/webhook-factory.ts'
import { windowBytesOf } from '../worker/window-memory.ts'
import type { Ways, WorkerApp } from '../worker/worker.ts'
import { workerGate } from '../worker/worker-gate.ts'
import { workerKeys } from '../worker/worker-keys.ts'
import { PortalListener } from './portal-listener.ts'
import type { PrivateApiOptions } from './private-api.ts'
import { createPrivateApi } from './private-api.ts'
import { PublicProbes } from './public-probes.ts'
import { workerHandlers } from './worker-handlers.ts'
import { noStreams, WorkerLifeCycle, type WorkerStreams } from './worker-life-cycle.ts'
import { allFeatures, deliveryModules, type FeatureLists } from './worker-modules.ts'
import { workerThreads } from './worker-threads.ts'

/** What the primary passes to every worker; cloned over the process channel. */
export interface WorkerSettings {
  readonly config: Config
  readonly dataDir: string
  /** In the order of their numbers. */
  readonly addedTypes: readonly AddedType[]
  readonly adminKey: string
  readonly eventSecrets: readonly string[]
  readonly certificates: ListenerCertificates
  /** The file of the shared memory. */
  readonly regionPath: string
  /** What stores the shards. */
  readonly store: EngineSettings
  /** When the server started, on the clock of the machine. */
  readonly startedAtMs: number
}

export interface WorkerAppContext {
  readonly start: WorkerStart
  readonly settings: WorkerSettings
  readonly ways: Ways
  readonly clock: Clock
  readonly log: Log
}

interface Parts extends WorkerAppContext {
  readonly calls: CallTable
  readonly memory: SharedMemory
  readonly engine: StoreEngine
  readonly databases: Databases
  readonly slot: MetricSlot
  readonly events: WorkerEvents
  readonly map: ShardMap
  readonly router: RequestRouter
  readonly guard: PrivateApiGuard
  readonly clientOf: ClientOf
  readonly gate: BudgetGate
  readonly bodies: BodyBudgets
  /** Set only with `--upstream`. */
  readonly upstream: UpstreamServices | undefined
  /** Set only if updates are traced. */
  readonly tracer: Tracer | undefined
}

/** With an upstream server, a call may take this long to arrive: 50 MB, the most that an upload may have, at 85 KB/s. */
const uploadTimeoutMs = 600_000

export async function prepareWorkerApp(
  context: WorkerAppContext,
  features: FeatureLists = allFeatures,
): Promise<WorkerApp> {
  const { start, settings, clock, log } = context
  const { calls } = features
  setAddedTypes(settings.addedTypes)
  const memory = SharedMemory.attach(settings.regionPath)
  const slot = memory.slot(start.worker, start.generation)
  const map = new ShardMap({ shards: start.shardCount, workers: start.workers })
  const upstream = await upstreamOf(context, slot)
  const engine = await engineOf(settings.store)
  const databases = new Databases({ databases: engine.shared?.databases ?? 0, clock, memory })
  const admission = admissionOf({ calls, clock }, guardOf(context, memory, databases), slot)
  const events = workerEvents({ ...context, engine, memory }, slot, (botId) =>
    registry.bots.usernameOf(botId),
  )
  const made = { memory, engine, databases, slot, map, ...admission, upstream, events }
  const { exporter, tracer } = tracingOf(context, slot)
  const common = { ...context, ...made, calls, tracer }
  const parts: Parts = { ...common, router: routerOf(common, (shard) => life.serves(shard)) }
  const { router } = parts
  const space = await spaceOf(parts)
  const webhooks = webhooksOf(parts)
  const { registry, modules } = await featuresOf(parts, features, { webhooks, space })
  const { pool, checkPool, verifyThread } = workerThreads(parts)
  const marks = new ShardMarks(settings.dataDir, log)
  const checker = checkerOf(parts, registry.bots, { marks, verifyThread })
  const streams = noStreams()
  const { keys, startKeys } = workerKeys(parts, registry.bots)
  const pacing = pacingOf(parts)
  const own = { registry, modules, streams, checkPool, checker, keys, pool, pacing }
  const handlers = await handlersOf(parts, own)
  const life = new WorkerLifeCycle({
    ...parts,
    bots: registry.bots,
    modules,
    space,
    webhooks,
    pools: [pool, checkPool, verifyThread],
    exporter,
    pacing,
    sweepers: sweepersOf(parts, registry, space),
    keys,
    startKeys,
    loopDelay: loopDelayOf(parts),
    endingSoon: endingSoonOf(parts, space),
    streams,
    shards: start.shards,
    past: { crash: start.crash, triesAgain: start.triesAgain ?? false },
    marks,
    checker,
    dataDir: settings.dataDir,
  })
  return Object.assign(life, {
    handlers,
    botRequestTimeoutMs: upstream === undefined ? undefined : uploadTimeoutMs,
    mayLast: (request: IncomingMessage) => router.mayLast(request),
    ...serverOptionsOf(parts),
  })
}

type OwnOfApis = Parameters<typeof botApiOf>[1] & Parameters<typeof privateOptionsOf>[1]

/** Makes the APIs of a worker. */
async function handlersOf(
  parts: Parts,
  own: OwnOfApis,
): Promise<ReturnType<typeof workerHandlers>> {
  const bot = botApiOf(parts, own)
  const options = privateOptionsOf(parts, own)
  const privateApi = createPrivateApi(options)
  const portal = portalOf(parts, options, own.pacing)
  const probes = probesOf(parts, options)
  await Promise.all([bot.app.ready(), privateApi.ready()])
  return workerHandlers({ ...parts, probes, portal, bot, privateApi })
}

/** Makes the bots of a worker, and then the modules, which need them. */
async function featuresOf(
  parts: Parts,
  features: FeatureLists,
  {
    webhooks,
    space,
  }: { readonly webhooks: WebhookFactory; readonly space: StoreSpace | undefined },
): Promise<{ readonly registry: BotRegistry; readonly modules: Modules<WorkerModule> }> {
  const { settings, clock, log, slot: counters, engine, events } = parts
  const modules = new Modules<WorkerModule>()
  const registry = registryOf(parts, { webhooks, modules, space })
  const given = { ...settings, clock, log, random, counters, registry, report: events.report }
  const isShared = engine.shared !== undefined
  const { attempts, network } = webhooks
  for (const make of Object.values(features.modules)) {
    modules.list.push(await make({ ...given, modules, isShared, attempts, network }))
  }
  modules.list.push(new BotFinder(clock, modules))
  return { registry, modules }
}

/** There is an exporter if an endpoint for spans is set, and a tracer if updates are traced. */
function tracingOf(
  { clock, log, settings: { config } }: WorkerAppContext,
  counters: Counters,
): { readonly exporter: SpanExporter | undefined; readonly tracer: Tracer | undefined } {
  const settings = otlpSettings(process.env)
  const exporter = settings && new SpanExporter({ clock, counters, log }, settings)
  const isTraced = config.traceContext || exporter !== undefined
  return { exporter, tracer: isTraced ? new Tracer(exporter?.report) : undefined }
}

/** What decides who may call, and what each client may use. */
function admissionOf(
  { calls, clock }: Pick<Parts, 'calls' | 'clock'>,
  guard: PrivateApiGuard,
  slot: MetricSlot,
) {
  const clientOf = clientsBy((request) => guard.holderOf(request))
  const gate = workerGate(clock, clientOf, calls)
  const bodies = bodyBudgets(slot, clientOf, (request, pieces) => gate.notePieces(request, pieces))
  return { guard, clientOf, gate, bodies }
}

function guardOf(
  { settings }: WorkerAppContext,
  { endedSessions }: SharedMemory,
  databases: Databases,
): PrivateApiGuard {
  const { adminKey, config } = settings
  const clock = databases.clockOf(keysShard)
  return new PrivateApiGuard({ adminKey, hosts: config.adminHosts, clock, endedSessions })
}

function endingSoonOf(
  { settings, ways, clock, slot, guard }: Parts,
  space: StoreSpace | undefined,
): EndingSoon {
  return new EndingSoon({
    clock,
    gauges: slot,
    ring: guard.ring,
    certificates: settings.certificates,
    routes: ways.routes,
    space,
  })
}

/** What works on the shards in the background. */
function sweepersOf(
  { clock, log, settings: { config }, start }: Parts,
  { bots }: BotRegistry,
  space: StoreSpace | undefined,
) {
  const kept = new KeptSweeper({
    clock,
    bots,
    log,
    retention: retentionOfServer(config),
    bytesMax: config.retainTotalBytes,
    shardCount: start.shardCount,
    isNearlyLow: (shard) => space?.isNearlyLow(shard) === true,
  })
  return [
    kept,
    new ExpirySweeper({ clock, bots, log }),
    new IdempotencyKeySweeper({ clock, bots, log }),
  ]
}

/** Delayed refusals may hold this share of the connections that a worker may have, so that most remain for requests. */
const heldRefusalsShare = 1 / 8

function pacingOf({ clock, memory }: Parts): TokenRefusals {
  const heldMax = Math.ceil(workerConnectionLimit() * heldRefusalsShare)
  return new TokenRefusals(clock, memory.clients, Math.min(heldMax, delayedRefusalsPerWorkerMax))
}

/** What the servers of a worker ask about connections, about keys and what they cost. */
function serverOptionsOf(parts: Parts) {
  const { clientOf, gate, settings, slot } = parts
  return {
    onRefused: () => slot.add('connections_refused', 1),
    certificates: settings.certificates,
    onHandshake: (isSecured: boolean) =>
      slot.add(isSecured ? 'tls_handshakes' : 'tls_handshakes_failed', 1),
    pipelinedPerTurnMax: pipelinedPerTurnMaxOf(parts),
    clientOf,
    holderWaitMs: (holder: string) => gate.holderWaitMs(holder),
    onPieces: (request: IncomingMessage, pieces: number) => gate.notePieces(request, pieces),
  }
}

/** The calls of keys wait for later turns (call-turns.ts); a client over its budget gets one response. */
function pipelinedPerTurnMaxOf({ clientOf, gate }: Parts): (request: IncomingMessage) => number {
  return (request) => {
    if (clientOf(request).holder !== undefined) return Infinity
    return gate.isOver(request) ? 1 : pipelinedPerTurnMax
  }
}

function checkerOf(
  { settings, clock, log, engine, slot: counters, events }: Parts,
  bots: BotCache,
  { marks, verifyThread }: { readonly marks: ShardMarks; readonly verifyThread: VerifyThread },
): ShardChecker {
  return new ShardChecker({
    dataDir: settings.dataDir,
    storeFiles: engine.files,
    clock,
    log,
    marks,
    verifyThread,
    counters,
    report: events.report,
    onTables: (shard, damage) => {
      if (damage === undefined) return bots.trust(shard)
      bots.doubt(shard)
      // What is read from such a table may be wrong, and a confirm after it would delete what a repair can rescue.
      bots.endStore(shard, new ShardDamaged(damage))
    },
  })
}

function spaceOf({ settings, clock, engine }: Parts): Promise<StoreSpace | undefined> {
  const { dataDir, config } = settings
  return engine.space(clock, dataDir, config.diskReserveBytes)
}

/** A random number from a CSPRNG: the first update ids should not be guessable. */
function random(): number {
  return randomInt(2 ** 47) / 2 ** 47
}

/** This imports the upstream services only if they are used, because loading them takes a while. */
async function upstreamOf(
  { settings, clock }: WorkerAppContext,
  counters: Counters,
): Promise<UpstreamServices | undefined> {
  const { upstream } = settings.config
  if (upstream === undefined) return undefined
  const { UpstreamServices: Services } = await import('../bot-api/upstream-services.ts')
  return new Services(upstream, settings.adminKey, { clock, counters })
}

function routerOf(parts: Omit<Parts, 'router'>, serves: (shard: number) => boolean): RequestRouter {
  const { calls, clock, start, settings, memory, slot, ways, guard, gate, bodies, upstream } = parts
  const hasUpstream = upstream !== undefined
  return new RequestRouter({
    clock,
    self: start.worker,
    ownShard: start.shards[0] ?? 0,
    serves,
    calls,
    ...ways,
    counters: slot,
    ownerOf: (shard) => memory.shardTable.owner(shard),
    hangsOf: (worker) => memory.shardTable.hangs(worker),
    hasUpstream,
    hasPublicPortal: settings.config.portal !== undefined,
    onRefused: (request) => gate.noteRefused(request),
    judge: new BodyFilter({
      guard,
      filter: settings.config.filter,
      takesForeignTokens: settings.config.foreignTokens,
      hasUpstream,
    }),
    bodies,
  })
}

function webhooksOf(parts: Parts): WebhookFactory {
  const { settings, slot: counters, upstream } = parts
  const { config } = settings
  return new WebhookFactory({
    ...parts,
    config,
    windowBytes: windowBytesOf({ ...config, workers: parts.start.workers }),
    random,
    counters,
    modules: deliveryModules(parts),
    replies: upstream?.replies,
  })
}

function registryOf(
  { settings, start, clock, events, log, map, slot, tracer }: Parts,
  own: {
    readonly webhooks: WebhookFactory
    readonly modules: Modules<WorkerModule>
    readonly space: StoreSpace | undefined
  },
): BotRegistry {
  const { config } = settings
  const { webhooks, modules, space } = own
  const { report } = events
  const limits = {
    updateBytesMax: config.maxUpdateBytes,
    pendingUpdatesMax: config.maxPendingUpdates,
    pendingBytesMax: config.maxPendingBytes,
  }
  return new BotRegistry(
    {
      clock,
      shardOf: (botId) => map.shardOf(botId),
      isDiskLow: (shard) => space?.isLow(shard) === true,
      isServed: (botId) => config.filter === undefined || isServed(botId, config.filter),
      services: {
        clock,
        random,
        counters: slot,
        budget: new WindowBudget(windowBytesOf({ ...config, workers: start.workers })),
        limits,
        retention: retentionOfServer(config),
        levels: new QueueLevels(limits, clock, report),
        report,
        webhooks,
        takesForeignTokens: config.foreignTokens,
        log,
        tracer,
      },
    },
    modules,
  )
}

function retentionOfServer({ retainMs: ms, retainBytes: bytes }: Config): Retention {
  return { ms, bytes }
}

function botApiOf(
  parts: Parts,
  own: {
    readonly registry: BotRegistry
    readonly pool: CompressPool
    readonly pacing: TokenRefusals
  },
): BotApi {
  const { settings, clock, log, memory, slot, upstream } = parts
  const { config } = settings
  return createBotApi({
    bots: own.registry,
    clock,
    counters: slot,
    log,
    demoLog: config.demo ? log : undefined,
    pacing: own.pacing,
    creationGate: memory.clients,
    updatesReply: new UpdatesReply(own.pool, config.compressOverBytes),
    filter: config.filter,
    bodies: parts.bodies.bot,
    webhookConnectionsMax: config.maxWebhookConnections,
    healthOf: config.healthInWebhookInfo ? (queue) => own.registry.healthOf(queue) : undefined,
    upstream: upstream?.proxy,
    sealToken: sealerOf(parts),
    clientOf: parts.clientOf,
    budget: parts.gate,
    holding: (request) => holdConnection(request.socket),
  })
}

function privateOptionsOf(
  parts: Parts,
  own: {
    readonly registry: BotRegistry
    readonly modules: Modules<WorkerModule>
    readonly streams: WorkerStreams
    readonly checkPool: CheckPool
    readonly checker: ShardChecker
    readonly keys: WorkerKeys
  },
): PrivateApiOptions {
  const { settings, clock, log, memory, engine } = parts
  const { config } = settings
  return {
    portal: { url: config.portal, frame: new PortalFrame(settings.adminKey) },
    bots: own.registry,
    takesForeignTokens: config.foreignTokens,
    modules: own.modules,
    calls: parts.calls,
    clock,
    counters: parts.slot,
    tracer: parts.tracer,
    log,
    ...own.streams,
    readEvents: (question) => parts.events.read(question),
    node: engine.shared?.node,
    version,
    keys: own.keys,
    checkPool: own.checkPool,
    guard: parts.guard,
    onRefused: (request) => parts.gate.noteRefused(request),
    payerOf: (request, botId) => parts.gate.payerOf(request, botId),
    bodies: parts.bodies.private,
    updateBytesMax: config.maxUpdateBytes,
    webhookConnectionsMax: config.maxWebhookConnections,
    secretTokenHeaders: config.secretTokenHeaders,
    sealToken: sealerOf(parts),
    readiness: () => readinessOf(parts),
    shards: parts.map.shards,
    isFirstWorker: parts.start.worker === 0,
    checkShard: (shard) => own.checker.request(shard),
    ownNode: () => ownNode(parts),
    routes: parts.ways.routes,
    shardAt: (shard) => own.registry.bots.shardAt(shard),
    totals: () => memory.totals(),
    histograms: () => memory.histograms(),
    minutes: (count) => memory.history.minutes(clock.nowMs(), count),
    streamPlace: ({ raw }, end) => streamPlace(raw.socket, end),
    isForwarded: (request) => (requestOrigin(request.raw)?.hops ?? 0) > 0,
    isFromWorker: ({ raw }) =>
      (requestOrigin(raw)?.hops ?? 0) > 0 && raw.headers[workerHeader] !== undefined,
    isTls: settings.certificates.private !== undefined,
    isUnixSocket: (request) => requestOrigin(request.raw)?.clientAddress === '',
    ownersOf: (request) => reachOwners(parts, request),
  }
}

function portalOf(
  { router, memory, bodies, clientOf }: Parts,
  options: PrivateApiOptions,
  pacing: TokenRefusals,
): PortalListener {
  return new PortalListener(router, {
    ...options,
    // Its clients have no key, so their bodies are counted by their addresses.
    bodies: bodies.bot,
    pacing,
    creationGate: memory.clients,
    clientOf,
    holding: (request) => holdConnection(request.socket),
    isPublic: ({ raw }) => requestOrigin(raw)?.listener === 'bot',
  })
}

function probesOf({ settings, clock, log, gate }: Parts, options: PrivateApiOptions): PublicProbes {
  return new PublicProbes({
    isOn: settings.config.publicHealthz,
    clock,
    log,
    readiness: () => options.readiness(),
    charge: (request) => gate.noteRefused(request),
  })
}

function sealerOf({ upstream }: Parts): ((token: string) => string) | undefined {
  return upstream === undefined ? undefined : (token) => upstream.sealToken(token)
}
