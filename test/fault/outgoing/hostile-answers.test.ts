/** Everything that the server asks of others, with every answer that costs too much: it ends, takes little, and is told in words. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Fastify from 'fastify'
import { SpanExporter } from '../../../src/app/span-exporter.ts'
import { systemClock } from '../../../src/clock.ts'
import { HttpOrigin } from '../../../src/relay/http-origin.ts'
import { UpstreamProxy } from '../../../src/upstream/upstream-proxy.ts'
import { UpstreamReplies } from '../../../src/upstream/upstream-replies.ts'
import { endpointChecked } from '../../support/webhook/endpoint-checked.ts'
import { parseEndpoint } from '../../../src/webhook/endpoint.ts'
import {
  hostileAnswers,
  type HostileServer,
  startHostileServer,
} from '../../support/network/hostile-answers.ts'
import { until } from '../../support/kit/until.ts'
import { stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { loopbackNetwork, setUpWebhook } from '../../support/webhook/webhook-setup.ts'

const noCounters = { add: () => undefined, observe: () => undefined }
const mib = 1_048_576
/** What the kernel and the buffers of two sockets hold beside what was read. */
const inFlightBytesMax = 12 * mib

const ignore = (): void => undefined

interface Use {
  /** What any hostile answer is told as. */
  readonly words: RegExp
  /** Asks once, and resolves with what is told of the answer. */
  readonly ask: (t: TestContext, origin: string) => Promise<string>
}

const uses: Readonly<Record<string, Use>> = {
  'a delivery': {
    words: /^Wrong response from the webhook: ./,
    ask: async (t, origin) => {
      const setup = stopAfter(t, setUpWebhook({ url: `${origin}/hook` }))
      setup.source.push({ updateId: 1 })
      setup.dispatcher.start(0)
      await until(() => setup.attempts.lastError !== undefined)
      return setup.attempts.lastError ?? ''
    },
  },
  'an operator event': {
    words: /^Wrong response from the webhook: ./,
    ask: async (t, origin) => {
      const setup = stopAfter(t, setUpWebhook({ url: `${origin}/events`, maxConnections: 1 }))
      setup.source.push({ updateId: 1, orderingKey: 'events' })
      setup.dispatcher.start(0)
      await until(() => setup.attempts.lastError !== undefined)
      return setup.attempts.lastError ?? ''
    },
  },
  'a check': {
    words: /^Wrong response from the webhook: ./,
    ask: (_t, origin) => endpointChecked(`${origin}/hook`),
  },
  'a relay poll': {
    words: /^The origin sent ./,
    ask: async (t, from) => {
      const origin = new HttpOrigin({
        endpoint: parseEndpoint(from, { local: true }),
        clock: systemClock,
        random: () => 0.5,
        network: loopbackNetwork,
      })
      t.after(() => origin.close())
      const poll = { token: '100:secret', offset: undefined, types: [], limit: 100, waitS: 50 }
      return origin.poll(
        poll,
        async (answer) => ('failure' in answer ? answer.failure.reason : 'updates'),
        new AbortController().signal,
      )
    },
  },
  'a method in a reply': {
    words: /^webhook_replies_failed$/,
    ask: async (t, origin) => {
      const counted: string[] = []
      const replies = new UpstreamReplies({
        upstream: { origin, prefix: '' },
        clock: systemClock,
        counters: { ...noCounters, add: (name) => void counted.push(name) },
        openToken: (sealed) => sealed,
      })
      t.after(() => replies.close())
      const intake = replies.intakeOf({ sealedToken: '100:secret', isTest: false })
      const body = Buffer.from('{"method":"sendMessage"}')
      assert(intake.reserve(body.length))
      intake.take({ orderingKey: 'a', contentType: 'application/json', body })
      await replies.settled()
      return counted.join()
    },
  },
  'a call that is passed on': {
    words: /^502 .*"Bad Gateway: the upstream server sent |^500 broken off$/,
    ask: async (t, origin) => {
      const upstream = { origin, prefix: '' }
      const proxy = new UpstreamProxy({ upstream, clock: systemClock, counters: noCounters })
      const app = Fastify()
      proxy.addTo(app)
      app.get('/call', (_request, reply) => {
        const target = { kind: 'method', token: '100:secret', isTest: false, methodName: 'x' }
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that are used
        proxy.pass(reply, target as Parameters<UpstreamProxy['pass']>[1])
        return reply
      })
      const url = await app.listen({ port: 0, host: '127.0.0.1' })
      t.after(async () => {
        await app.close()
        await proxy.close()
      })
      const response = await fetch(`${url}/call`)
      const text = await response.text().catch(() => 'broken off')
      return `${response.status} ${text}`
    },
  },
  'an export of traces': {
    words: /^the endpoint sent |^Error HPE_[A-Z_]+$/,
    ask: async (t, origin) => {
      process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = origin
      const told: string[] = []
      const warn = (fields: object): void => void told.push(Object.values(fields).join())
      const exporter = new SpanExporter({
        clock: systemClock,
        counters: noCounters,
        log: { debug: ignore, info: ignore, error: ignore, warn },
        settings: { protocol: 'http/json', queueMax: 5, batchMax: 1, delayMs: 1 },
      })
      t.after(() => exporter.close())
      exporter.report({
        name: 'push',
        traceId: '1'.repeat(32),
        spanId: '2'.repeat(16),
        parentId: '3'.repeat(16),
        startMs: 1,
        endMs: 2,
        isError: false,
        attributes: {},
      })
      await until(() => told.length > 0, 60_000)
      return told.join()
    },
  },
}

/** What a use reads of an answer at most, beside its framing. */
const bodyBytesMax = 8 * mib

function assertLittle(server: HostileServer): void {
  const bytes = server.writtenMax()
  assert(bytes < bodyBytesMax + inFlightBytesMax, `${bytes} bytes were taken`)
}

for (const [use, { words, ask }] of Object.entries(uses)) {
  test(`${use} takes little of an answer that goes on for ever, and ends with a reason`, async (t) => {
    for (const [name, answer] of Object.entries(hostileAnswers)) {
      await t.test(name, async (each) => {
        const server = await startHostileServer(each, answer)
        const told = await ask(each, server.origin)
        assert.match(told, words)
        each.diagnostic(`${told.slice(0, 120)} (${server.writtenMax()} bytes)`)
        assertLittle(server)
      })
    }
  })
}
