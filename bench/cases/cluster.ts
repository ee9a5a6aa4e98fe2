/**
 * The same load on one server with its shards on LevelDB, on one whose shards are in a PostgreSQL with or without a
 * synchronous standby, and on three nodes that share such a pair. The load goes to the first node only, so it forwards two
 * requests of three. Everything shares the CPUs of this machine: three nodes cost more here, and gain nothing.
 */
import { startNodes } from '../cluster-nodes.ts'
import type { BenchCase, CaseContext, Contestant, Target } from '../contestant.ts'
import { ownContestant } from '../http-contestants.ts'
import { directPlan, polledBots } from '../poll-plan.ts'
import { PostgresPair } from '../postgres-pair.ts'
import { startServer, type StartServer } from '../server-under-test.ts'
import { openSink } from '../webhook-fleet.ts'
import { ingestContestant, type IngestShape } from './ingest.ts'
import { openServer } from './latency.ts'
import { webhookContestant } from './webhook.ts'

const levelName = 'LevelDB'
/** Two for each of two workers, as docs/run/cluster.md recommends: groups are larger with few shards. */
const shards = 4
const pollConnections = 32

interface Stored {
  readonly name: string
  readonly start: StartServer
}

interface InDatabase {
  readonly name: string
  readonly hasStandby: boolean
  readonly nodes: number
}

const inDatabase: readonly InDatabase[] = [
  { name: 'PostgreSQL pair', hasStandby: true, nodes: 1 },
  { name: '3 nodes, PostgreSQL pair', hasStandby: true, nodes: 3 },
  { name: 'PostgreSQL', hasStandby: false, nodes: 1 },
]

/** Its producer has streams to each worker of each node, so nothing is forwarded. */
const hintedNodes = { name: '3 nodes, hints', hasStandby: true, nodes: 3 }

function storedIn(context: CaseContext, { name, hasStandby, nodes }: InDatabase): Stored {
  return {
    name,
    async start(_context, options) {
      const database = await PostgresPair.start(context, { hasStandby })
      return startNodes(context, { ...options, database, shards, nodes })
    },
  }
}

async function allStores(
  context: CaseContext,
  open: (stored: Stored) => Promise<Contestant>,
): Promise<readonly Contestant[]> {
  const contestants: Contestant[] = []
  for (const each of inDatabase) {
    contestants.push(await open(storedIn(context, each)))
    if (context.isAlone) return contestants
  }
  const start: StartServer = (_context, options) => startServer(context, { ...options, others: [] })
  contestants.push(await open({ name: levelName, start }))
  return contestants
}

const shapes: readonly IngestShape[] = [
  { name: 'cluster-ingest', bots: 1_000 },
  { name: 'cluster-ingest-idempotent', bots: 1_000, hasIdempotencyKey: true },
]

const rateTarget: Target = { kind: 'rateRatio', against: levelName, min: 0.4 }

export const clusterCases: readonly BenchCase[] = [
  ...shapes.map(
    (shape): BenchCase => ({
      name: shape.name,
      title: `NDJSON ingest, 300 B updates, 1,000 bots${shape.hasIdempotencyKey === true ? ', idempotency_key given' : ''}`,
      operation: 'update',
      targets: [rateTarget],
      charted: { kind: 'rateRatio', against: levelName },
      async open(context) {
        const contestants = await allStores(context, (stored) =>
          ingestContestant(context, { ...stored, shape }),
        )
        if (context.isAlone) return contestants
        const hinted = { ...storedIn(context, hintedNodes), shape, isHinted: true }
        return [...contestants, await ingestContestant(context, hinted)]
      },
    }),
  ),
  {
    name: 'cluster-poll',
    title: `getUpdates with 100 x 300 B to give, ${pollConnections} connections`,
    operation: 'request',
    targets: [],
    charted: { kind: 'rateRatio', against: levelName },
    open: (context) =>
      allStores(context, async ({ name, start }) => {
        const server = await start(context, {})
        const shape = { updates: 100 }
        const polled = await polledBots(server, await server.registerBots(pollConnections), shape)
        return ownContestant(context, {
          name,
          server,
          connections: directPlan(server, polled, shape),
        })
      }),
  },
  {
    name: 'cluster-push-to-poll',
    title: 'from push to long poll, 100 bots, 2,000 updates a second',
    operation: 'update',
    targets: [{ kind: 'figureRatio', figure: 'p50 ms', against: levelName, max: 2 }],
    charted: { kind: 'figure', figure: 'p50 ms' },
    open: (context) => allStores(context, (stored) => openServer(context, stored)),
  },
  {
    name: 'cluster-webhook',
    title: 'webhook deliveries, 100 bots, 40 connections each, 300 B updates',
    operation: 'delivery',
    targets: [rateTarget],
    charted: { kind: 'rateRatio', against: levelName },
    open(context) {
      const shape = { bots: 100, connections: 40, keys: 10 }
      return allStores(context, async ({ name, start }) => {
        // Its own, because the bots of all contestants have the same ids.
        const sink = await openSink(context)
        const server = await start(context, {})
        return webhookContestant(context, { name, shape, sink, server })
      })
    },
  },
]
