/**
 * Webhook deliveries to a local sink in several shapes, over http and over TLS: first as fast as possible, deletions
 * included, then at a steady rate, which shows the delay of an update from the producer to the bot.
 *
 * Bare undici does the same in the same shape, with as many processes as can share the bots, without a queue or a disk.
 */
import { makeCertificate } from '../certificate.ts'
import type { BenchCase, CaseContext, Contestant, Sample } from '../contestant.ts'
import type { Delays } from '../delays.ts'
import { HelperProcess } from '../helper-process.ts'
import { commonYardstick, nginx } from '../http-contestants.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { sampleUpdate, seededRandom } from '../sample-updates.ts'
import { ServerUnderTest } from '../server-under-test.ts'
import type { SendQuestion } from '../steady-messages.ts'
import {
  asked,
  inFlightMax,
  openSink,
  WebhookFleet,
  webhookHeaders,
  webhookPath,
  type WebhookShape,
  type WebhookSink,
} from '../webhook-fleet.ts'

/** Below the limit of one queue. */
const updatesPerRunMax = 80_000
const updatesPerRunMin = 2_000
/** With fewer updates per connection, the beginning and the end would be much of a run. */
const updatesPerConnectionMin = 4
const rateExpected = 10_000
const bareName = 'bare undici'
/** Measured beside nginx, except over TLS. */
const commonNames: readonly string[] = ['webhook', 'webhook-key', 'webhook-ordered']
const steadyRatePerSecond = 2_000
/** Longer, so that the p99 of a round rests on more than a few updates. */
const steadyLengthFactor = 1.5
const body = `{"update_id":100000000,${sampleUpdate(seededRandom(3), 1).slice(1)}`

export interface NamedShape extends WebhookShape {
  readonly name: string
  readonly title: string
}

export const webhookShape: NamedShape = {
  name: 'webhook',
  title: 'one bot, 40 connections',
  bots: 1,
  connections: 40,
  keys: 1_000,
}

const shapes: readonly NamedShape[] = [
  webhookShape,
  {
    name: 'webhook-100',
    title: 'one bot, 100 connections',
    bots: 1,
    connections: 100,
    keys: 1_000,
  },
  { name: 'webhook-key', title: 'one bot, one ordering key', bots: 1, connections: 40, keys: 1 },
  {
    name: 'webhook-20x40',
    title: '20 bots, 40 connections each',
    bots: 20,
    connections: 40,
    keys: 200,
  },
  {
    name: 'webhook-ordered',
    title: '100 bots, one ordering key each',
    bots: 100,
    connections: 40,
    keys: 1,
  },
  {
    name: 'webhook-1000',
    title: '1,000 bots, one connection each',
    bots: 1_000,
    connections: 1,
    keys: 10,
  },
]

export const webhookCases: readonly BenchCase[] = shapes.flatMap((shape) => [
  webhookCase(shape, false),
  webhookCase(shape, true),
])

function webhookCase(shape: NamedShape, isSecure: boolean): BenchCase {
  const isCommon = commonNames.includes(shape.name) && !isSecure
  return {
    name: isSecure ? `${shape.name}-tls` : shape.name,
    title: `webhook deliveries, ${shape.title}, 300 B updates${isSecure ? ', over TLS' : ''}`,
    operation: 'delivery',
    isExtra: !isCommon,
    targets:
      shape.name === 'webhook' && !isSecure
        ? [{ kind: 'cpuRatio', against: commonYardstick, max: 4.5 }]
        : [],
    charted: { kind: 'cpuRatio', against: isCommon ? commonYardstick : bareName },
    async open(context) {
      const identity = isSecure ? makeCertificate(context.directory) : undefined
      const sink = await openSink(context, identity)
      const server = await ServerUnderTest.start(context, { trustFile: identity?.file })
      const own = await webhookContestant(context, { name: 'postbote', shape, sink, server })
      if (context.isAlone) return [own]
      const bare = undiciContestant(context, { shape, sink, trust: identity?.cert })
      return [own, bare, ...(isCommon ? await openNginx(context, shape.connections) : [])]
    },
  }
}

export async function webhookContestant(
  context: CaseContext,
  options: {
    readonly name: string
    readonly shape: WebhookShape
    readonly sink: WebhookSink
    readonly server: ServerUnderTest
  },
): Promise<Contestant> {
  const { name, shape, server } = options
  const fleet = await WebhookFleet.open(context, options)
  const countMin = Math.max(updatesPerRunMin, inFlightMax(shape) * updatesPerConnectionMin)
  let rate = rateExpected
  return {
    name,
    async run(durationMs) {
      // A webhook without a recent success opens connections slowly, and the other contestants take turns of a minute.
      await fleet.deliver(shape.bots)
      const wanted = Math.round((rate * durationMs) / 1_000)
      const sample = await fleet.deliver(Math.min(Math.max(wanted, countMin), updatesPerRunMax))
      rate = sample.operations / sample.seconds
      return withSteady(sample, await fleet.steady(steadyPace(durationMs)))
    },
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
  }
}

export function steadyPace(durationMs: number): { ratePerSecond: number; durationMs: number } {
  return { ratePerSecond: steadyRatePerSecond, durationMs: durationMs * steadyLengthFactor }
}

export function withSteady(
  sample: Sample,
  steady: { readonly operations: number; readonly cpuUs: number; readonly delays: Delays },
): Sample {
  const { operations, cpuUs, delays } = steady
  const figures = {
    'steady p50 ms': delays.p50Ms,
    'steady p99 ms': delays.p99Ms,
    'steady CPU us/op': cpuUs / operations,
  }
  return { ...sample, figures }
}

function undiciContestant(
  context: CaseContext,
  options: {
    readonly shape: WebhookShape
    readonly sink: WebhookSink
    readonly trust: string | undefined
  },
): Contestant {
  const { shape, sink, trust } = options
  const processes = Math.min(context.workers, shape.bots)
  const senders = Array.from({ length: processes }, (_, index) => ({
    helper: new HelperProcess('undici-sender', context),
    bots: Math.floor((shape.bots + index) / processes),
  }))
  const ask = (ratePerSecond: number | undefined, durationMs: number): Promise<IngestSample[]> =>
    Promise.all(
      senders.map(({ helper, bots }) => {
        const question: SendQuestion = {
          origin: sink.origin,
          trust,
          bots,
          connections: Math.min(shape.connections, shape.keys),
          path: webhookPath,
          headers: webhookHeaders,
          body,
          ratePerSecond: ratePerSecond === undefined ? undefined : ratePerSecond / processes,
          durationMs,
        }
        return helper.ask<IngestSample>(question)
      }),
    )
  const cpuUs = (): number => senders.reduce((sum, { helper }) => sum + helper.cpuUs(), 0)
  return {
    name: bareName,
    async run(durationMs) {
      const cpuUsBefore = cpuUs()
      const loadCpuUs = sink.helper.cpuUs()
      const samples = await ask(undefined, durationMs)
      const sample = {
        operations: operationsOf(samples),
        seconds: Math.max(...samples.map(({ seconds }) => seconds)),
        cpuUs: cpuUs() - cpuUsBefore,
        loadCpuUs: sink.helper.cpuUs() - loadCpuUs,
      }
      const { ratePerSecond, durationMs: steadyMs } = steadyPace(durationMs)
      const steadyCpuUs = cpuUs()
      await sink.helper.ask(asked({ kind: 'watch' }))
      const operations = operationsOf(await ask(ratePerSecond, steadyMs))
      const delays = await sink.helper.ask<Delays>(asked({ kind: 'delays', count: operations }))
      return withSteady(sample, { operations, cpuUs: cpuUs() - steadyCpuUs, delays })
    },
  }
}

function operationsOf(samples: readonly IngestSample[]): number {
  return samples.reduce((sum, { operations }) => sum + operations, 0)
}

/** What nginx spends on such a request as a server, under `http-load`. */
function openNginx(context: CaseContext, connections: number): Promise<Contestant[]> {
  const lines = [
    `POST ${webhookPath} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Content-Length: ${body.length}`,
  ]
  for (let index = 0; index < webhookHeaders.length; index += 2) {
    lines.push(`${webhookHeaders[index]}: ${webhookHeaders[index + 1]}`)
  }
  const requests = [`${lines.join('\r\n')}\r\n\r\n${body}`]
  return nginx(context, { name: commonYardstick, connections, requests, bodyBytes: 2 })
}
