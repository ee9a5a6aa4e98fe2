/**
 * Webhook deliveries beside the worker that people write on BullMQ and undici: the shape of the case `webhook`, so one bot
 * with 40 connections. The worker runs in as many processes as Postbote has workers, which share the 40 connections.
 */
import { type BenchCase, type CaseContext, type Contestant, warmPace } from '../contestant.ts'
import { meterCpu } from '../cpu-meter.ts'
import type { Delays } from '../delays.ts'
import { HelperProcess } from '../helper-process.ts'
import { missingFor } from '../peers/all-peers.ts'
import type { BullmqWebhookQuestion } from '../peers/bullmq-webhook-messages.ts'
import type { PeerServer } from '../peers/peer.ts'
import { startRedis } from '../peers/redis-server.ts'
import { ServerUnderTest } from '../server-under-test.ts'
import { until } from '../until.ts'
import { asked, openSink, webhookHeaders, webhookPath, type WebhookSink } from '../webhook-fleet.ts'
import { steadyPace, webhookContestant, webhookShape, withSteady } from './webhook.ts'

const name = 'BullMQ and undici'
const { connections } = webhookShape
const deliveriesMin = 2_000
const deliveriesPerSecondExpected = 5_000
const waitMsMax = 60_000

export const peersWebhookCase: BenchCase = {
  name: 'peers-webhook',
  title: 'other queues: webhook deliveries, one bot, 40 connections, 300 B events',
  operation: 'delivery',
  targets: [],
  isExtra: true,
  pace: warmPace,
  charted: { kind: 'cpuRatio', against: name },
  async open(context) {
    const sink = await openSink(context)
    const server = await ServerUnderTest.start(context)
    const options = { name: 'postbote', shape: webhookShape, sink, server }
    const own = await webhookContestant(context, options)
    if (context.isAlone) return [own]
    const missing = missingFor('BullMQ')
    if (missing === undefined) return [own, await openBullmq(context, sink)]
    process.stdout.write(`${name} is left out: ${missing} is not installed\n`)
    return [own]
  },
}

/** The processes of the worker that people write. */
interface Senders {
  readonly server: PeerServer
  readonly producer: HelperProcess
  readonly workers: readonly HelperProcess[]
  readonly sink: WebhookSink
}

async function openBullmq(context: CaseContext, sink: WebhookSink): Promise<Contestant> {
  const server = await startRedis(context)
  const { address } = server
  const producer = new HelperProcess('bullmq-webhook', context)
  await producer.ask(question({ kind: 'connect', address }))
  const workers = Array.from(
    { length: context.workers },
    () => new HelperProcess('bullmq-webhook', context),
  )
  const concurrency = Math.ceil(connections / workers.length)
  const url = `${sink.origin}${webhookPath}`
  for (const worker of workers) {
    await worker.ask(question({ kind: 'work', address, url, headers: webhookHeaders, concurrency }))
  }
  const senders: Senders = { server, producer, workers, sink }
  let rate = deliveriesPerSecondExpected
  return {
    name,
    async run(durationMs) {
      const count = Math.max(deliveriesMin, Math.round((rate * durationMs) / 1_000))
      const sample = await deliver(senders, count)
      rate = sample.operations / sample.seconds
      return withSteady(sample, await steady(senders, steadyPace(durationMs)))
    },
    residentBytes: () =>
      server.residentBytes() + workers.reduce((sum, each) => sum + each.residentBytes(), 0),
  }
}

/** As `WebhookFleet.deliver`: the clock starts when all connections wait for their response. */
async function deliver({ server, producer, workers, sink }: Senders, count: number) {
  const before = await completedBy(workers)
  const { helper } = sink
  await helper.ask(asked({ kind: 'hold' }))
  await producer.ask(question({ kind: 'add', count }))
  const isFull = async (): Promise<boolean> =>
    (await helper.ask<number>(asked({ kind: 'held' }))) === connections
  await until(isFull, waitMsMax)
  const costs = meterCpu([server, ...workers], [helper])
  const startMs = performance.now()
  await helper.ask(asked({ kind: 'release', count }))
  await until(async () => (await completedBy(workers)) === before + count, waitMsMax)
  return { operations: count, seconds: (performance.now() - startMs) / 1_000, ...costs() }
}

async function steady(
  { server, producer, workers, sink }: Senders,
  pace: { readonly ratePerSecond: number; readonly durationMs: number },
) {
  const { helper } = sink
  await helper.ask(asked({ kind: 'watch' }))
  const costs = meterCpu([server, ...workers], [])
  const operations = await producer.ask<number>(question({ kind: 'steady', ...pace }))
  const delays = await helper.ask<Delays>(asked({ kind: 'delays', count: operations }))
  return { operations, cpuUs: costs().cpuUs, delays }
}

async function completedBy(workers: readonly HelperProcess[]): Promise<number> {
  const counts = await Promise.all(
    workers.map((worker) => worker.ask<number>(question({ kind: 'completed' }))),
  )
  return counts.reduce((sum, each) => sum + each, 0)
}

/** Checks the type of a question. */
function question(given: BullmqWebhookQuestion): BullmqWebhookQuestion {
  return given
}
