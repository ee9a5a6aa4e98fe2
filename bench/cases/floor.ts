/** NDJSON ingest beside its lower bound: what is left between the two is what a server does beyond checking and storing. */
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { type BenchCase, type CaseContext, type Contestant, warmPace } from '../contestant.ts'
import { meterCpu } from '../cpu-meter.ts'
import { HelperProcess } from '../helper-process.ts'
import type { FloorQuestion } from '../helpers/floor.ts'
import type { IngestQuestion } from '../helpers/ingest-load.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { ingestContestant, ingestLoad } from './ingest.ts'

const name = 'floor'
const shape = { name, bots: 1_000 }
/** As many as the server has shards. */
const databases = 8

export const floorCase: BenchCase = {
  name,
  title: 'NDJSON ingest beside the least that it costs on Node with LevelDB',
  operation: 'update',
  targets: [{ kind: 'cpuRatio', against: name, max: 1.3 }],
  charted: { kind: 'cpuRatio', against: name },
  pace: warmPace,
  async open(context) {
    const own = await ingestContestant(context, { name: 'postbote', shape })
    return context.isAlone ? [own] : [own, await openFloor(context)]
  },
}

async function openFloor(context: CaseContext): Promise<Contestant> {
  const server = new HelperProcess('floor', context)
  const load = new HelperProcess('ingest-load', context)
  const directory = await mkdtemp(join(context.directory, 'floor-'))
  const place: FloorQuestion = { directory, databases }
  const port = await server.ask<number>(place)
  return {
    name,
    async run(durationMs) {
      const asked: IngestQuestion = { ...ingestLoad(shape), port, adminKey: '', durationMs }
      await load.ask({ ...asked, durationMs: 0 })
      const costs = meterCpu([server], [load])
      const sample = await load.ask<IngestSample>(asked)
      return { ...sample, ...costs() }
    },
    residentBytes: () => server.residentBytes(),
  }
}
