/**
 * What postbote/client costs a producer beside NDJSON written to bare sockets: the same objects, each with a random key,
 * over the same number of connections to one server. Here the producers are the contestants, and the server is the load.
 */
import type { BenchCase, CaseContext, Contestant } from '../contestant.ts'
import { meterCpu } from '../cpu-meter.ts'
import { HelperProcess } from '../helper-process.ts'
import type { ClientProducerQuestion } from '../helpers/client-producer.ts'
import { commonNginx } from '../http-contestants.ts'
import type { IngestSample } from '../ingest-sample.ts'
import type { ProducerQuestion } from '../producer-items.ts'
import { updateBytes } from '../sample-updates.ts'
import { firstBotId, ServerUnderTest } from '../server-under-test.ts'

/** Two for each of two workers: a stream of the client has one for each worker. */
const connections = 4
const workers = 2
const bots = 1_000
const bareName = 'bare sockets'
/** Nothing reads the queues. */
const wideQueues = ['--max-pending-updates', '1000000000', '--max-pending-bytes', String(2 ** 40)]

type Question = Omit<ProducerQuestion, 'durationMs'> | Omit<ClientProducerQuestion, 'durationMs'>

export const producerClientCase: BenchCase = {
  name: 'producer-client',
  title: `postbote/client, ${updateBytes} B updates, ${bots.toLocaleString('en')} bots, ${connections} connections, idempotency keys; load is the server`,
  operation: 'update',
  targets: [],
  charted: { kind: 'cpuRatio', against: bareName },
  async open(context) {
    const server = await ServerUnderTest.start(context, { workers, flags: wideQueues })
    await server.registerBots(bots)
    const { privatePort: port, adminKey } = server
    const question = { port, adminKey, streams: connections / workers, firstBotId, bots }
    const own = producer(context, server, {
      name: 'postbote/client, streams',
      helper: 'client-producer',
      question: { ...question, way: 'stream' },
    })
    if (context.isAlone) return [own]
    return [
      own,
      producer(context, server, {
        name: 'postbote/client, pushAll',
        helper: 'client-producer',
        question: { ...question, way: 'pushAll' },
      }),
      producer(context, server, {
        name: bareName,
        helper: 'raw-producer',
        question: { ...question, streams: connections },
      }),
      ...(await commonNginx(context)),
    ]
  },
}

function producer(
  context: CaseContext,
  server: ServerUnderTest,
  options: { readonly name: string; readonly helper: string; readonly question: Question },
): Contestant {
  const { name, helper, question } = options
  const process = new HelperProcess(helper, context)
  return {
    name,
    async run(durationMs) {
      // Preparation is not part of the measured cost.
      await process.ask({ ...question, durationMs: 0 })
      const costs = meterCpu([process], [server])
      const sample = await server.profiled(() =>
        process.ask<IngestSample>({ ...question, durationMs }),
      )
      return { ...sample, ...costs() }
    },
    residentBytes: () => process.residentBytes(),
    profiles: server.profiles,
  }
}
