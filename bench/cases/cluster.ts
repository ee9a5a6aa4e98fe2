/** The same server with its shards on LevelDB, in a PostgreSQL, and in one with a synchronous standby. */
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import type { Metered } from '../cpu-meter.ts'
import { PostgresPair } from '../postgres-pair.ts'
import { ingestContestant, type IngestShape } from './ingest.ts'
import { openServer } from './latency.ts'

const levelName = 'LevelDB'
const pairName = 'PostgreSQL pair'
/** As many as a data directory has on two CPUs, so that only the store differs. */
const shards = 8

interface Stored {
  readonly name: string
  readonly flags?: readonly string[]
  readonly database?: Metered
}

async function allStores(
  context: CaseContext,
  open: (stored: Stored) => Promise<Contestant>,
): Promise<readonly Contestant[]> {
  const contestants: Contestant[] = []
  for (const [name, hasStandby] of [
    [pairName, true],
    ['PostgreSQL', false],
  ] as const) {
    const database = await PostgresPair.start(context, { hasStandby })
    contestants.push(await open({ name, database, flags: database.flags(shards) }))
    if (context.isProfiled) return contestants
  }
  contestants.push(await open({ name: levelName }))
  return contestants
}

const shapes: readonly IngestShape[] = [
  { name: 'cluster-ingest', bots: 1_000 },
  { name: 'cluster-ingest-idempotent', bots: 1_000, hasIdempotencyKey: true },
]

export const clusterCases: readonly BenchCase[] = [
  ...shapes.map(
    (shape): BenchCase => ({
      name: shape.name,
      title: `NDJSON ingest, 300 B updates, 1,000 bots${shape.hasIdempotencyKey === true ? ', idempotency_key given' : ''}`,
      operation: 'update',
      targets: [{ kind: 'rateRatio', against: levelName, min: 0.4 }],
      charted: { kind: 'rateRatio', against: levelName },
      open: (context) =>
        allStores(context, (stored) => ingestContestant(context, { ...stored, shape })),
    }),
  ),
  {
    name: 'cluster-push-to-poll',
    title: 'from push to long poll, 100 bots, 2,000 updates a second',
    operation: 'update',
    targets: [],
    charted: { kind: 'figure', figure: 'p50 ms' },
    open: (context) => allStores(context, (stored) => openServer(context, stored)),
  },
]
