/**
 * How the thread that checks large updates affects NDJSON ingest. Large updates, for which it is meant, are measured
 * beside a server that checks them on its event loop; so are small ones, which are faster without the thread.
 */
import type { BenchCase } from '../contestant.ts'
import { ingestContestant, type IngestShape } from './ingest.ts'

interface PoolShape {
  readonly name: string
  readonly title: string
  readonly shape: IngestShape
  /** The first contestant runs with the default; `otherCheckOver` is the `--check-over` of the other one. */
  readonly otherName: string
  readonly otherCheckOver: string
}

const shapes: readonly PoolShape[] = [
  {
    name: 'ingest-pool',
    title: '300 B updates, checked in place',
    shape: { name: 'ingest-pool', bots: 1_000 },
    otherName: 'all in the thread',
    otherCheckOver: '0',
  },
  {
    name: 'ingest-large',
    title: '400 KB updates, checked in the thread',
    shape: { name: 'ingest-large', bots: 10, bytes: 400_000 },
    otherName: 'all in place',
    otherCheckOver: 'off',
  },
]

export const ingestPoolCases: readonly BenchCase[] = shapes.map(
  ({ name, title, shape, otherName, otherCheckOver }): BenchCase => ({
    name,
    title: `NDJSON ingest, ${title}`,
    operation: 'update',
    targets: [],
    charted: { kind: 'rateRatio', against: otherName },
    isExtra: true,
    async open(context) {
      const own = await ingestContestant(context, { name: 'postbote', shape, isWatched: true })
      if (context.isAlone) return [own]
      const flags = ['--check-over', otherCheckOver]
      const other = { name: otherName, shape, flags, isWatched: true }
      return [own, await ingestContestant(context, other)]
    },
  }),
)
