/**
 * NDJSON ingest of 300-byte updates, each durable before its result is sent: over few and many bots, with and without
 * ordering and idempotency keys.
 */
import { join } from 'node:path'
import { type BenchCase, type CaseContext, type Contestant, warmPace } from '../contestant.ts'
import { meterCpu } from '../cpu-meter.ts'
import { HelperProcess } from '../helper-process.ts'
import type { IngestQuestion } from '../helpers/ingest-load.ts'
import { commonNginx } from '../http-contestants.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { watchLoops } from '../loop-watch.ts'
import { updateBytes } from '../sample-updates.ts'
import { startServer, type StartServer } from '../server-under-test.ts'
import { streamGroups } from '../stream-groups.ts'

/** Two for each of two workers: they are assigned in turn. */
const streams = 4
const bareName = 'bare leveldown'
const unhintedName = 'without hints'
/** A single bot gets more updates than a queue holds by default. */
const wideQueues = ['--max-pending-updates', '1000000000', '--max-pending-bytes', String(2 ** 40)]

export interface IngestShape {
  readonly name: string
  readonly bots: number
  readonly hasOrderingKey?: boolean
  readonly hasIdempotencyKey?: boolean
  /** By default the usual size. */
  readonly bytes?: number
}

const shapes: readonly IngestShape[] = [
  { name: 'ingest-key', bots: 1_000, hasOrderingKey: true },
  { name: 'ingest', bots: 1_000 },
  { name: 'ingest-idempotent', bots: 1_000, hasIdempotencyKey: true },
  { name: 'ingest-1-bot', bots: 1 },
  { name: 'ingest-100k-bots', bots: 100_000 },
]

export const ingestCases: readonly BenchCase[] = [...shapes.map(caseOf), hintedCase()]

function caseOf(shape: IngestShape): BenchCase {
  return {
    name: shape.name,
    title: titleOf(shape),
    operation: 'update',
    targets:
      shape.bots === 1_000 && shape.hasIdempotencyKey !== true
        ? [
            { kind: 'rate', min: 100_000 },
            { kind: 'rateRatio', against: bareName, min: 0.45 },
          ]
        : [],
    charted: { kind: 'rateRatio', against: bareName },
    isLong: shape.bots > 1_000,
    pace: warmPace,
    open: async (context) => {
      const own = await ingestContestant(context, { name: 'postbote', shape })
      if (context.isAlone) return [own]
      return [own, openLeveldown(context, shape.bots), ...(await commonNginx(context))]
    },
  }
}

/** The same with hints, beside the same without, in the same rounds. */
function hintedCase(): BenchCase {
  const shape = { name: 'ingest-hints', bots: 1_000 }
  const usual = caseOf(shape)
  return {
    ...usual,
    title: `${titleOf(shape)}, each stream with the bots of one worker`,
    charted: { kind: 'cpuRatio', against: unhintedName },
    open: async (context) => {
      const own = await ingestContestant(context, { name: 'postbote', shape, isHinted: true })
      if (context.isAlone) return [own]
      const unhinted = await ingestContestant(context, { name: unhintedName, shape })
      return [own, unhinted, openLeveldown(context, shape.bots), ...(await commonNginx(context))]
    },
  }
}

function titleOf(shape: IngestShape): string {
  return `NDJSON ingest, 300 B updates, ${botsOf(shape)}, ${keysOf(shape)}`
}

function botsOf({ bots }: IngestShape): string {
  return bots === 1 ? 'one bot' : `${bots.toLocaleString('en')} bots`
}

function keysOf({ hasOrderingKey = false, hasIdempotencyKey = false }: IngestShape): string {
  const keys = `ordering_key ${hasOrderingKey ? 'given' : 'derived'}`
  return hasIdempotencyKey ? `${keys}, idempotency_key given` : keys
}

export async function ingestContestant(
  context: CaseContext,
  options: {
    readonly name: string
    readonly shape: IngestShape
    /** Replaces the number of workers of the context. */
    readonly workers?: number
    /** Default: `startServer`. */
    readonly start?: StartServer
    /** Each worker gets the bots of its shards, on streams of its own. */
    readonly isHinted?: boolean
    /** Whether the figures include how long its event loops were blocked. */
    readonly isWatched?: boolean
  },
): Promise<Contestant> {
  const { name, shape, workers = context.workers, isWatched = false, isHinted = false } = options
  const { start = startServer } = options
  const server = await start(context, {
    workers,
    flags: wideQueues,
    ...(isWatched ? { isInspected: true } : {}),
  })
  await server.registerBots(shape.bots)
  const take = isWatched ? await watchLoops(server.inspected) : undefined
  const load = new HelperProcess('ingest-load', context)
  const { privatePort: port, adminKey } = server
  const groups = isHinted ? await streamGroups(server.nodes) : undefined
  const question = { ...ingestLoad(shape), port, adminKey, groups }
  return {
    name,
    async run(durationMs) {
      const asked: IngestQuestion = { ...question, durationMs }
      // Preparation is not part of the measured cost.
      await load.ask({ ...asked, durationMs: 0 })
      await take?.()
      const costs = meterCpu(server.processes, [load])
      const sample = await server.profiled(() => load.ask<IngestSample>(asked))
      const measured = { ...sample, ...costs() }
      const holds = await take?.()
      if (holds === undefined) return measured
      return {
        ...measured,
        figures: { 'busy max ms': holds.busyMsMax, 'over 20 ms': holds.overBound },
      }
    },
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
  }
}

/** What the helper `ingest-load` sends. */
export function ingestLoad({
  bots,
  hasOrderingKey = false,
  hasIdempotencyKey = false,
  bytes = updateBytes,
}: IngestShape): Omit<IngestQuestion, 'port' | 'adminKey' | 'durationMs'> {
  return { streams, bots, updateBytes: bytes, hasOrderingKey, hasIdempotencyKey }
}

function openLeveldown(context: CaseContext, bots: number): Contestant {
  const writer = new HelperProcess('leveldown-writer', context)
  const directory = join(context.directory, 'bare')
  return {
    name: bareName,
    async run(durationMs) {
      const costs = meterCpu([writer], [])
      const sample = await writer.ask<IngestSample>({ directory, bots, durationMs })
      return { ...sample, ...costs() }
    },
  }
}
