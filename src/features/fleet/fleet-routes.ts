/**
 * Routes about all bots of the server: the list, which can select and sort bots by their state, and the sums. Each worker
 * answers for its own shards, and the worker that has the request puts the answers together.
 *
 * The plain list of the names waits for a worker that starts, and fails if one does not answer then, because programs compare it
 * with their own. A list by state and the sums are for operators, often while something fails: they name what is missing.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { addFleetCounts, type FleetCounts, noFleetCounts, type ShardSums } from './fleet-counts.ts'
import type { Fleet } from './fleet.ts'
import type { BotList, ListedBot } from './listed-bots.ts'
import { fleetOrder, type FleetQuery } from './fleet-status.ts'
import { ownerWaitMsMax } from '../../api/limits.ts'
import { sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { type MetricName, summaryMetrics } from '../../kit/metrics.ts'
import { fleetOperations } from './fleet-operations.ts'
import { querySchema, type ResultOf } from '../../api/operation.ts'
import { recordOf } from '../../kit/record-of.ts'
import {
  addServerMinutes,
  deliveryModes,
  deliveryPercentileMs,
  type ServerMinute,
} from '../../kit/server-minute.ts'
import { measureRest } from '../../admission/budgets/charge-calls.ts'
import { addOperation } from '../../private-api/add-operations.ts'
import {
  type AskingRoute,
  askWorkers,
  type WorkerAnswer,
  workersAnswerMs,
} from '../../links/ask/ask-workers.ts'
import { addAnswers, type AnswersTo, asks } from '../../links/ask/question.ts'
import { fieldValues } from '../../private-api/field-values.ts'
import { requestAccess } from '../../access/request-access.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'

export type FleetApi = Pick<PrivateApiParts, 'isFirstWorker' | 'minutes' | 'shards' | 'totals'> &
  AskingRoute

interface Options extends FleetApi {
  readonly fleet: Fleet
  /** What this worker answers. */
  readonly answers: AnswersTo<typeof fleetQuestions>
}

type BotListJson = ResultOf<typeof fleetOperations.listBots>
type SummaryJson = ResultOf<typeof fleetOperations.getSummary>

/** The summary shows the delivery times of this many minutes. Chosen: short enough to be of now, and several updates of slow bots. */
const summaryMinutes = 5

/** A worker that refuses to answer is asked again after this pause. Chosen: as a shard that is reopened, at the most. */
const listAskAgainMs = 1_000

type ShownCounters = SummaryJson['updates']

/** What one worker contributes to the summary. */
interface SummaryPart {
  readonly sums: readonly ShardSums[]
  /** Of the node; undefined if another worker of it answers for them. */
  readonly counters: ShownCounters | undefined
  /** The last minutes of the node, likewise. Nodes of the version before have none. */
  readonly minutes?: readonly ServerMinute[] | undefined
}

/** A question about the bots that a key is for. */
type OwnQuery = FleetQuery & { readonly bots: readonly number[] }

export const fleetQuestions = {
  /** Which bots of its shards match? */
  bots: asks<FleetQuery, BotList>('bot-list', () => querySchema(fleetOperations.listBots)),
  /** Which of these bots match? */
  ownBots: asks<OwnQuery, BotList>('own-bot-list'),
  /** What are the sums of its bots, for each shard? */
  summary: asks<undefined, SummaryPart>('summary'),
}

export function addFleetRoutes(app: FastifyInstance, fleet: Fleet, api: FleetApi): void {
  const answers = answersOf(fleet, api)
  const options = { ...api, fleet, answers }
  addAnswers(app, fleetQuestions, answers, api)
  addOperation(app, fleetOperations.listBots, ({ request, query }) =>
    listBots(options, request, query),
  )
  addOperation(app, fleetOperations.getSummary, ({ request }) => summarize(options, request))
}

function answersOf(
  fleet: Fleet,
  { isFirstWorker, totals, minutes }: FleetApi,
): AnswersTo<typeof fleetQuestions> {
  return {
    bots: (query) => (isPlain(query) ? fleet.page(query) : fleet.list(query)),
    ownBots: ({ bots, ...query }) => fleet.list(query, new Set(bots)),
    summary: async () => ({
      sums: await fleet.summary(),
      counters: isFirstWorker ? shownCountersOf(totals()) : undefined,
      minutes: isFirstWorker ? minutes(summaryMinutes) : undefined,
    }),
  }
}

async function listBots(
  options: Options,
  request: FastifyRequest,
  { details = false, ...query }: FleetQuery & { readonly details?: boolean | undefined },
): Promise<BotListJson> {
  if (query.sort !== undefined && query.after > 0) {
    const detail =
      'after: expected none with sort, because only a list in the order of ids has a next page; use limit'
    throw new PostboteError('BAD_REQUEST', { detail })
  }
  const access = requestAccess(request)
  const own = access === 'root' ? undefined : access.bots
  const answers = await askForList(options, request, { ...query, bots: own && [...own] })
  measureRest(request)
  const found = answers.flatMap(({ answer }) =>
    answer.bots.filter(({ botId }) => own?.has(botId) !== false),
  )
  // Two workers answer for a shard that moves from one to the other.
  const distinct = new Map(found.map((bot) => [bot.botId, bot]))
  const bots = [...distinct.values()].toSorted(fleetOrder(query.sort)).slice(0, query.limit)
  const covered = answers.flatMap(({ answer }) => answer.shards)
  return {
    bots: bots.map((bot) => ({
      ...listedJson(bot),
      ...(details ? detailsJson(bot, options.clock.nowMs()) : {}),
    })),
    missing_shards: fieldValues.missingShards(options.shards, covered),
  }
}

async function askForList(
  options: Options,
  request: FastifyRequest,
  { bots, ...query }: FleetQuery & { readonly bots: readonly number[] | undefined },
): Promise<readonly WorkerAnswer<BotList>[]> {
  if (bots === undefined) {
    return (isPlain(query) ? askUntilAllAnswer : askForBots)(options, request, query)
  }
  const owners = options.ownersOf(request)
  const costMs = options.fleet.questionCostMs(Math.min(query.limit, bots.length))
  const paid = { payer: request.payer, costMs }
  return askWorkers({ ...options, owners, paid }, fleetQuestions, 'ownBots', { ...query, bots })
}

async function askForBots(
  options: Options,
  request: FastifyRequest,
  query: FleetQuery,
): Promise<readonly WorkerAnswer<BotList>[]> {
  const owners = options.ownersOf(request)
  const pages = isPlain(query) ? options.shards / (owners.others.length + 1) : 1
  const costMs = options.fleet.questionCostMs(query.limit * pages)
  const paid = { payer: request.payer, costMs }
  return askWorkers({ ...options, owners, paid }, fleetQuestions, 'bots', query)
}

/** All are asked again, because the bots of a node that has ended are those of the others by then. */
async function askUntilAllAnswer(
  options: Options,
  request: FastifyRequest,
  query: FleetQuery,
): Promise<readonly WorkerAnswer<BotList>[]> {
  const { clock } = options
  const lastMs = clock.monotonicMs() + ownerWaitMsMax - workersAnswerMs
  for (;;) {
    const answers = await askForBots(options, request, query)
    const { others, hasLeft } = options.ownersOf(request)
    if (answers.length > others.length) return answers
    if (hasLeft || clock.monotonicMs() >= lastMs) throw new PostboteError('STORE_UNAVAILABLE')
    await sleep(clock, listAskAgainMs)
  }
}

/** Without a new parameter, only the names are read, in the order in which they are stored: a page of each shard. */
function isPlain({ state, sort, prefix, search }: FleetQuery): boolean {
  return [state, sort, prefix, search].every((field) => field === undefined)
}

async function summarize(options: Options, request: FastifyRequest): Promise<SummaryJson> {
  const owners = options.ownersOf(request)
  const paid = { payer: request.payer, costMs: options.fleet.questionCostMs(0) }
  const asked = { ...options, owners, paid }
  const answers = await askWorkers(asked, fleetQuestions, 'summary', undefined)
  measureRest(request)
  const sums = answers.flatMap(({ answer }) => answer.sums)
  // Two workers answer for a shard that moves from one to the other.
  const ofShards = new Map(sums.map(({ shard, counts }) => [shard, counts]))
  const counts = [...ofShards.values()].reduce(addFleetCounts, noFleetCounts)
  const ofOtherNodes = answers.flatMap(({ answer, isOtherNode }) =>
    isOtherNode && answer.counters !== undefined ? [answer.counters] : [],
  )
  return {
    ...countsJson(counts),
    updates: sumOf([shownCountersOf(options.totals()), ...ofOtherNodes]),
    delivery: deliveryOf([
      ...options.minutes(summaryMinutes),
      ...answers.flatMap(({ answer, isOtherNode }) => (isOtherNode && answer.minutes) || []),
    ]),
    workers: owners.others.length + (owners.self >= 0 ? 1 : 0),
    shards: options.shards,
    missing_shards: fieldValues.missingShards(options.shards, [...ofShards.keys()]),
  }
}

/** Returns the counters of a node that a summary shows. */
function shownCountersOf(totals: Readonly<Record<MetricName, number>>): ShownCounters {
  return forEachShown((name) => totals[summaryMetrics[name]])
}

function deliveryOf(minutes: readonly ServerMinute[]): SummaryJson['delivery'] {
  const [first, ...others] = minutes
  const sum = first && others.reduce(addServerMinutes, first)
  return recordOf(deliveryModes, (mode) => ({
    p50_ms: deliveryPercentileMs(sum, mode, 0.5),
    p99_ms: deliveryPercentileMs(sum, mode, 0.99),
  }))
}

function sumOf(all: readonly ShownCounters[]): ShownCounters {
  return forEachShown((name) => all.reduce((total, each) => total + each[name], 0))
}

function forEachShown(valueOf: (name: keyof ShownCounters) => number): ShownCounters {
  return {
    pushed: valueOf('pushed'),
    confirmed: valueOf('confirmed'),
    delivered: valueOf('delivered'),
    expired: valueOf('expired'),
    refused: valueOf('refused'),
  }
}

function countsJson(
  counts: FleetCounts,
): Omit<SummaryJson, 'updates' | 'delivery' | 'workers' | 'shards' | 'missing_shards'> {
  const { polling, webhook, health, oldest } = counts
  return {
    bots: polling + webhook,
    mode: { polling, webhook },
    health,
    paused: counts.paused,
    ...(counts.fought > 0 ? { conflicts: counts.fought } : {}),
    pending: counts.pending,
    pending_bytes: counts.pendingBytes,
    oldest_age: oldest?.ageS ?? null,
    oldest_bot_id: oldest?.botId ?? null,
    oldest_test: oldest?.isTest ?? null,
    dead_letters: counts.deadLetters,
  }
}

/** The state of a bot is not known while its worker starts. */
function listedJson({ status, ...bot }: ListedBot): BotListJson['bots'][number] {
  return {
    ...fieldValues.botNames(bot),
    mode: status?.mode ?? null,
    pending: status?.pendingCount ?? null,
    oldest_age: status?.oldestAgeS ?? null,
    paused: status?.isPaused ?? null,
    ...healthJson(status),
    next_attempt: fieldValues.timeOrNull(status?.nextAttemptMs),
  }
}

function healthJson(
  status: ListedBot['status'],
): Pick<BotListJson['bots'][number], 'health' | 'health_reason'> {
  return { health: status?.health ?? null, health_reason: status?.healthReason }
}

type Details = Pick<
  BotListJson['bots'][number],
  'dead_letters' | 'last_taken' | 'last_poll' | 'webhook_host'
>

function detailsJson({ status }: ListedBot, nowMs: number): Details {
  const timeOf = (beforeMs: number | undefined): number | null =>
    beforeMs === undefined ? null : Math.floor((nowMs - beforeMs) / 1_000)
  return {
    dead_letters: status?.deadLetters ?? null,
    last_taken: timeOf(status?.takenBeforeMs),
    last_poll: timeOf(status?.polledBeforeMs),
    webhook_host: status?.webhookHost ?? null,
  }
}
