/** Everything that the server asks of others, each as one question to an origin. */
import assert from 'node:assert/strict'
import Fastify from 'fastify'
import { Client } from 'undici'
import { EventSender } from '../../../src/features/events/event-sender.ts'
import { SpanExporter } from '../../../src/features/tracing/span-exporter.ts'
import type { Clock } from '../../../src/kit/clock.ts'
import { EventLog } from '../../../src/process/event-log.ts'
import { HttpOrigin } from '../../../src/features/relay/http-origin.ts'
import { UpstreamProxy } from '../../../src/bot-api/upstream-proxy.ts'
import { UpstreamReplies } from '../../../src/bot-api/upstream-replies.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import { silentLog } from '../kit/silent-log.ts'
import { until } from '../kit/until.ts'
import { FakeClock } from '../kit/fake-clock.ts'
import { endpointChecked } from '../webhook/endpoint-checked.ts'
import { loopbackNetworkOf, setUpWebhook, type WebhookSetup } from '../webhook/webhook-setup.ts'
import { oneSpan } from './span-collector.ts'

/** What is told of a success. */
export const taken = 'taken'

/** Registers what ends with the question. */
interface Ending {
  after(end: () => unknown): void
}

export interface Question {
  readonly origin: string
  readonly clock: Clock
  /** Ends after the last question to this origin. */
  readonly world: Ending
}

export interface OutgoingUse {
  /** What any failure is told as. */
  readonly words: RegExp
  /** Whether a 2xx status line is a success, whatever follows it. */
  readonly isFirstLineEnough: boolean
  /** Whether it works in a thread, with a clock of its own and connections that are kept. */
  readonly isInThread?: true
  /** A late answer is given up at the latest when the clock has moved by twenty times this. */
  readonly lateStepMs: number
  /** Asks once, and resolves with what is told of the answer. */
  readonly ask: (t: Ending, question: Question) => Promise<string>
}

/** The part of the secrets of a question that must not be told. */
export const secret = 'se-cret'
const token = `100:${secret}`
const noCounters = { add: () => undefined, observe: () => undefined }
const ignore = (): void => undefined
/** Undici's timers know no other clock. */
const responseTimeoutMs = 500
/** Of a call that is passed on, a client of the test reads this much. */
const clientBytesMax = 4 * 1_048_576

async function firstAttempt({ attempts }: WebhookSetup): Promise<string> {
  await until(() => attempts.latest().length > 0)
  return attempts.latest().at(-1)?.error ?? taken
}

const ofWebhooks =
  /^(Wrong response from the webhook: .|Webhook connection closed$|Connection reset by peer$|Read timeout expired)/

export const outgoingUses: Readonly<Record<string, OutgoingUse>> = {
  'a delivery': {
    words: ofWebhooks,
    isFirstLineEnough: true,
    lateStepMs: 100,
    ask: async (t, { origin, clock }) => {
      const setup = setUpWebhook(
        { url: `${origin}/hook`, secretToken: secret },
        { clock, responseTimeoutMs },
      )
      t.after(() => setup.dispatcher.close())
      setup.source.push({ updateId: 1 })
      setup.dispatcher.start(0)
      return firstAttempt(setup)
    },
  },
  'an operator event': {
    words: ofWebhooks,
    isFirstLineEnough: true,
    lateStepMs: 100,
    ask: async (t, { origin, clock }) => {
      const log = new EventLog({
        clock,
        stored: { events: [], deliveredTo: undefined },
        file: { add: ignore, deliveredTo: ignore },
      })
      const setups: WebhookSetup[] = []
      const sender = new EventSender(
        { clock, counters: noCounters },
        {
          read: (question) => log.read(question),
          position: async () => log.deliveryPosition(),
          deliveredTo: async (id) => log.deliveredTo(id),
        },
        (source) => {
          const settings = { url: `${origin}/events`, maxConnections: 1 }
          const setup = setUpWebhook(settings, { clock, responseTimeoutMs, source })
          setups.push(setup)
          return setup.dispatcher
        },
      )
      t.after(async () => {
        await sender.stop(0)
        for (const { dispatcher } of setups) await dispatcher.close()
      })
      void sender.start()
      await until(() => setups.length > 0)
      log.report({ type: 'queue.high', timeMs: clock.nowMs(), botId: 100 })
      return firstAttempt(setups[0] ?? assert.fail())
    },
  },
  'a check': {
    words: ofWebhooks,
    isFirstLineEnough: true,
    lateStepMs: 10_000,
    ask: async (_t, { origin, clock }) => {
      const { state, text } = await endpointChecked(`${origin}/hook`, clock)
      return state === 'ok' ? taken : text
    },
  },
  'a relay poll': {
    words:
      /^The (origin (sent|answers too slowly|failed|redirects|asks|broke off|cannot be reached: )|answer of the origin has more)/,
    isFirstLineEnough: false,
    lateStepMs: 10_000,
    ask: async (t, { origin: from, clock }) => {
      const origin = new HttpOrigin(
        { clock, log: silentLog, random: () => 0.5 },
        parseEndpoint(from, { local: true }),
        loopbackNetworkOf(clock),
      )
      t.after(() => origin.close())
      return origin.poll(
        { token, offset: undefined, types: [], limit: 100, waitS: 50 },
        async (answer) => ('failure' in answer ? answer.failure.reason : taken),
        new AbortController().signal,
      )
    },
  },
  'a method in a reply': {
    words: /^webhook_replies_failed$/,
    isFirstLineEnough: false,
    lateStepMs: 10_000,
    ask: async (t, { origin, clock }) => {
      const counted: string[] = []
      const replies = new UpstreamReplies(
        { origin, prefix: '' },
        { clock, counters: { ...noCounters, add: (name) => void counted.push(name) } },
        (sealed) => sealed,
      )
      t.after(() => replies.close())
      const intake = replies.intakeOf({ sealedToken: token, isTest: false })
      const body = Buffer.from('{"method":"sendMessage"}')
      assert(intake.reserve(body.length))
      intake.take({ orderingKey: 'a', contentType: 'application/json', body })
      await replies.settled()
      return counted.join() === 'webhook_replies_sent' ? taken : counted.join()
    },
  },
  'a call that is passed on': {
    words: /^502 .*"Bad Gateway: the upstream server |^\d{3} (broken off|cut off|passed on)$/,
    isFirstLineEnough: false,
    lateStepMs: 3_600_000,
    ask: async (t, { origin, clock }) => {
      const proxy = new UpstreamProxy({ origin, prefix: '' }, { clock, counters: noCounters })
      const app = Fastify()
      proxy.addTo(app)
      app.get('/call', (_request, reply) => {
        const target = { kind: 'method', token, isTest: false, methodName: 'x' }
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that are used
        proxy.pass(reply, target as Parameters<UpstreamProxy['pass']>[1])
        return reply
      })
      const client = new Client(await app.listen({ port: 0, host: '127.0.0.1' }))
      t.after(async () => {
        await client.destroy()
        await app.close()
        await proxy.close()
      })
      return readCall(client)
    },
  },
  'an export of traces': {
    words: /^the endpoint (sent|did not) |^Error [A-Z_]+$|^OTLPExporterError \d+$/,
    isFirstLineEnough: false,
    isInThread: true,
    lateStepMs: 1,
    ask: async (_t, { origin, world }) => {
      const traces = tracesTo.get(world) ?? openTraces(world, origin)
      tracesTo.set(world, traces)
      return traces()
    },
  },
}

/** One for all questions to an origin, because its thread takes half a second to start. */
const tracesTo = new WeakMap<Ending, () => Promise<string>>()

function openTraces(world: Ending, origin: string): () => Promise<string> {
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = origin
  process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] = `${responseTimeoutMs}`
  const clock = new FakeClock()
  const told: string[] = []
  const exporter = new SpanExporter(
    {
      clock,
      counters: {
        ...noCounters,
        add: (name) => {
          if (name === 'trace_spans_exported') told.push(taken)
        },
      },
      log: { ...silentLog, warn: (fields: object) => void told.push(Object.values(fields).join()) },
    },
    { protocol: 'http/json', queueMax: 5, batchMax: 1, delayMs: 1 },
  )
  world.after(() => exporter.close())
  return async () => {
    exporter.report(oneSpan)
    await until(() => told.length > 0)
    // The log says a failure once a minute.
    await clock.advance(60_000)
    return told.splice(0).join()
  }
}

/** Returns what a client sees of a call that is passed on, without the text of a success. */
async function readCall(client: Client): Promise<string> {
  const { statusCode, body } = await client.request({ method: 'GET', path: '/call' })
  let text = ''
  try {
    for await (const piece of body) {
      text += String(piece)
      if (text.length > clientBytesMax) return `${statusCode} cut off`
    }
  } catch {
    return `${statusCode} broken off`
  }
  if (statusCode === 502) return `502 ${text}`
  return statusCode === 200 || statusCode === 204 ? taken : `${statusCode} passed on`
}

/** Asks once, and ends what belongs to the question. */
export async function asked({ ask }: OutgoingUse, question: Question): Promise<string> {
  const ends: (() => unknown)[] = []
  try {
    return await ask({ after: (end) => void ends.push(end) }, question)
  } finally {
    for (const end of ends) await end()
  }
}
