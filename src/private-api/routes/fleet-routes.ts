/**
 * Routes about all bots of the server: the list, which can select and sort bots by their state, and the sums. Each worker
 * answers for its own shards, and the worker that has the request puts the answers together.
 *
 * The plain list of the names fails if a worker does not answer, because programs compare it with their own. A list by
 * state and the sums are for operators, often while something fails: they name what is missing.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { BotList, BotService, ListedBot, ShardSums } from '../../bots/bot-service.ts'
import { addFleetCounts, type FleetCounts, noFleetCounts } from '../../bots/fleet-counts.ts'
import { fleetOrder, type FleetQuery, type FleetStatus } from '../../bots/fleet-status.ts'
import type { Clock } from '../../clock.ts'
import { PostboteError } from '../../errors.ts'
import type { MetricName } from '../../metrics.ts'
import { botOperations } from '../../operations/bot-operations.ts'
import { querySchema, type ResultOf } from '../../operations/operation.ts'
import { addOperation } from './add-operations.ts'
import { askOwners } from '../ask-owners.ts'
import { type BotNames, botSummaryJson } from './bot-summary-json.ts'
import type { Owners } from '../owners.ts'
import { unixSeconds } from './unix-seconds.ts'

export interface FleetRoutesOptions {
  readonly clock: Clock
  readonly bots: BotService
  /** The number of shards of the server. */
  readonly shards: number
  /** Whether this is the first worker of its node, which answers for the counters of the node. */
  readonly isFirstWorker: boolean
  ownersOf(request: FastifyRequest): Owners
  /** Whether another worker forwarded the request, so that only this worker responds to it. */
  isForwarded(request: FastifyRequest): boolean
  /** The sums of the counters of all workers of this node. */
  totals(): Readonly<Record<MetricName, number>>
}

type BotListJson = ResultOf<typeof botOperations.listBots>
type SummaryJson = ResultOf<typeof botOperations.getSummary>

interface Listing {
  Querystring: FleetQuery
}

/** The counters that a summary shows, by their names in it. */
const shownCounters = {
  pushed: 'updates_pushed',
  confirmed: 'updates_confirmed',
  delivered: 'updates_delivered',
  expired: 'updates_expired',
  refused: 'updates_refused',
} as const satisfies Readonly<Record<string, MetricName>>

type ShownCounters = Readonly<Record<keyof typeof shownCounters, number>>

interface SummaryPart {
  readonly sums: readonly ShardSums[]
  /** Of the node; undefined if another worker of it answers for them. */
  readonly counters: ShownCounters | undefined
}

export function addFleetRoutes(app: FastifyInstance, options: FleetRoutesOptions): void {
  addOperation(app, botOperations.listBots, ({ request, query }) =>
    listBots(options, request, query),
  )
  addOperation(app, botOperations.getSummary, ({ request }) => summarize(options, request))

  // Used between workers only: each returns what one worker knows.
  const assertForwarded = (request: FastifyRequest): void => {
    if (!options.isForwarded(request)) throw new PostboteError('NOT_FOUND')
  }
  app.post<Listing>(
    '/internal/bot-list',
    { schema: { querystring: querySchema(botOperations.listBots) } },
    async (request) => {
      assertForwarded(request)
      return ownList(options.bots, request.query)
    },
  )
  app.post('/internal/summary', async (request) => {
    assertForwarded(request)
    return ownSummary(options)
  })
}

async function listBots(
  options: FleetRoutesOptions,
  request: FastifyRequest,
  query: FleetQuery,
): Promise<BotListJson> {
  if (query.sort !== undefined && query.after > 0) {
    const detail =
      'after: expected none with sort, because only a list in the order of ids has a next page; use limit'
    throw new PostboteError('BAD_REQUEST', { detail })
  }
  const owners = options.ownersOf(request)
  const answers = await askOwners<BotList>({
    clock: options.clock,
    owners,
    path: `/internal/bot-list?${queryText(query)}`,
    own: () => ownList(options.bots, query),
  })
  if (isPlain(query) && answers.length <= owners.others.length) {
    throw new PostboteError('STORE_UNAVAILABLE')
  }
  const found = answers.flatMap(({ answer }) => answer.bots)
  // Two workers answer for a shard that moves from one to the other.
  const distinct = new Map(found.map((bot) => [bot.botId, bot]))
  const bots = [...distinct.values()].toSorted(fleetOrder(query.sort)).slice(0, query.limit)
  const covered = answers.flatMap(({ answer }) => answer.shards)
  return { bots: bots.map((bot) => listedJson(bot)), ...missingJson(options.shards, covered) }
}

/** Without a new parameter, only the names are read, in the order in which they are stored. */
function isPlain({ state, sort, prefix }: FleetQuery): boolean {
  return state === undefined && sort === undefined && prefix === undefined
}

function ownList(bots: BotService, query: FleetQuery): Promise<BotList> {
  return isPlain(query) ? bots.list(query) : bots.select(query)
}

function queryText(query: FleetQuery): string {
  const given = Object.entries(query).map(([name, value]): [string, string] => [name, `${value}`])
  return new URLSearchParams(given).toString()
}

async function summarize(
  options: FleetRoutesOptions,
  request: FastifyRequest,
): Promise<SummaryJson> {
  const owners = options.ownersOf(request)
  const answers = await askOwners<SummaryPart>({
    clock: options.clock,
    owners,
    path: '/internal/summary',
    own: () => ownSummary(options),
  })
  const sums = answers.flatMap(({ answer }) => answer.sums)
  // Two workers answer for a shard that moves from one to the other.
  const ofShards = new Map(sums.map(({ shard, counts }) => [shard, counts]))
  const counts = [...ofShards.values()].reduce(addFleetCounts, noFleetCounts)
  const ofOtherNodes = answers.flatMap(({ answer, isOtherNode }) =>
    isOtherNode && answer.counters !== undefined ? [answer.counters] : [],
  )
  return {
    ...countsJson(counts),
    updates: sumOf([countersOf(options.totals()), ...ofOtherNodes]),
    workers: owners.others.length + (owners.self >= 0 ? 1 : 0),
    shards: options.shards,
    ...missingJson(options.shards, [...ofShards.keys()]),
  }
}

async function ownSummary(options: FleetRoutesOptions): Promise<SummaryPart> {
  return {
    sums: await options.bots.summary(),
    counters: options.isFirstWorker ? countersOf(options.totals()) : undefined,
  }
}

function countersOf(totals: Readonly<Record<MetricName, number>>): ShownCounters {
  return {
    pushed: totals[shownCounters.pushed],
    confirmed: totals[shownCounters.confirmed],
    delivered: totals[shownCounters.delivered],
    expired: totals[shownCounters.expired],
    refused: totals[shownCounters.refused],
  }
}

function sumOf(all: readonly ShownCounters[]): ShownCounters {
  const sum = (name: keyof ShownCounters): number =>
    all.reduce((total, each) => total + each[name], 0)
  return {
    pushed: sum('pushed'),
    confirmed: sum('confirmed'),
    delivered: sum('delivered'),
    expired: sum('expired'),
    refused: sum('refused'),
  }
}

function countsJson(
  counts: FleetCounts,
): Omit<SummaryJson, 'updates' | 'workers' | 'shards' | 'missing_shards'> {
  const { polling, webhook, health, oldest } = counts
  return {
    bots: polling + webhook,
    mode: { polling, webhook },
    health,
    paused: counts.paused,
    pending: counts.pending,
    pending_bytes: counts.pendingBytes,
    oldest_age: oldest?.ageS ?? null,
    oldest_bot_id: oldest?.botId ?? null,
    oldest_test: oldest?.isTest ?? null,
    dead_letters: counts.deadLetters,
  }
}

/** The shards that no worker has answered for. */
function missingJson(
  shards: number,
  covered: readonly number[],
): Pick<BotListJson, 'missing_shards'> {
  const all = Array.from({ length: shards }, (_, shard) => shard)
  const known = new Set(covered)
  const missing = all.filter((shard) => !known.has(shard))
  return missing.length > 0 ? { missing_shards: missing } : {}
}

function listedJson({ status, ...bot }: ListedBot): BotListJson['bots'][number] {
  return { ...botSummaryJson(bot), ...(status === undefined ? unknownState : stateJson(status)) }
}

function stateJson(status: FleetStatus): Omit<BotListJson['bots'][number], keyof BotNames> {
  const { nextAttemptMs } = status
  return {
    mode: status.mode,
    pending: status.pendingCount,
    oldest_age: status.oldestAgeS ?? null,
    paused: status.isPaused,
    health: status.health ?? null,
    next_attempt: nextAttemptMs === undefined ? null : unixSeconds(nextAttemptMs),
  }
}

/** The fields of `stateJson` for a bot whose state is not known yet. */
const unknownState = {
  mode: null,
  pending: null,
  oldest_age: null,
  paused: null,
  health: null,
  next_attempt: null,
}
