/** NDJSON ingest: 300-byte updates over 1,000 bots, every one durable before it is answered. */
import { join } from 'node:path'
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { HelperProcess } from '../helper-process.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { ServerUnderTest } from '../server-under-test.ts'

const bots = 1_000
/** Two for each of two workers: they are dealt out in turn. */
const streams = 4

export function ingestCase(hasOrderingKey: boolean): BenchCase {
  const variant = hasOrderingKey ? 'ordering_key given' : 'ordering_key derived'
  return {
    name: hasOrderingKey ? 'ingest-key' : 'ingest',
    title: `NDJSON ingest, 300 B updates, 1,000 bots, ${variant}`,
    operation: 'update',
    targets: [
      { kind: 'rate', min: 60_000 },
      { kind: 'rateRatio', against: 'bare leveldown', min: 0.3 },
    ],
    open: async (context) => {
      const server = await openServer(context, hasOrderingKey)
      return context.isProfiled ? [server] : [server, openLeveldown(context)]
    },
  }
}

async function openServer(context: CaseContext, hasOrderingKey: boolean): Promise<Contestant> {
  const server = await ServerUnderTest.start(context)
  await server.registerBots(bots)
  const load = new HelperProcess('ingest-load', context)
  const { privatePort: port, adminKey } = server
  const question = { port, adminKey, streams, bots, hasOrderingKey }
  return {
    name: 'postbote',
    async run(durationMs) {
      const cpuUs = server.cpuUs()
      const loadCpuUs = load.cpuUs()
      const sample = await server.profiled(() =>
        load.ask<IngestSample>({ ...question, durationMs }),
      )
      return { ...sample, cpuUs: server.cpuUs() - cpuUs, loadCpuUs: load.cpuUs() - loadCpuUs }
    },
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
  }
}

function openLeveldown(context: CaseContext): Contestant {
  const writer = new HelperProcess('leveldown-writer', context)
  const directory = join(context.directory, 'bare')
  return {
    name: 'bare leveldown',
    async run(durationMs) {
      const cpuUs = writer.cpuUs()
      const sample = await writer.ask<IngestSample>({ directory, bots, durationMs })
      return { ...sample, cpuUs: writer.cpuUs() - cpuUs, loadCpuUs: 0 }
    },
  }
}
