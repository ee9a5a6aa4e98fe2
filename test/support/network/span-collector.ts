/** An OTLP receiver over HTTP that keeps the spans it gets, in JSON. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { portOf } from '../kit/port.ts'
import { until } from '../kit/until.ts'
import type { Span } from '../../../src/kit/tracing/tracer.ts'
import type { EndingTest } from '../server/server.ts'

/** A span to send. */
export const oneSpan: Span = {
  name: 'push',
  traceId: '1'.repeat(32),
  spanId: '2'.repeat(16),
  parentId: '3'.repeat(16),
  startMs: 1,
  endMs: 2,
  isError: false,
  attributes: {},
}

/** A span as OTLP tells it, with the fields that tests use. */
export interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status: { readonly code?: number }
  readonly attributes: readonly { readonly key: string; readonly value: object }[]
}

export interface SpanCollector {
  readonly url: string
  /** The bodies of all requests. */
  readonly texts: readonly string[]
  readonly headers: readonly IncomingHttpHeaders[]
  /** The spans of a trace. */
  spansOf(traceId: string): readonly ReceivedSpan[]
  /** Resolves with the spans of a trace when there are that many. */
  atLeast(count: number, traceId: string): Promise<readonly ReceivedSpan[]>
}

type Answer = (response: ServerResponse) => void

/** Accepts everything unless it answers otherwise. */
export async function startCollector(
  t: EndingTest,
  answer: Answer = (response) => response.end('{}'),
): Promise<SpanCollector> {
  const texts: string[] = []
  const headers: IncomingHttpHeaders[] = []
  const spans: ReceivedSpan[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      texts.push(text)
      headers.push(request.headers)
      spans.push(...spansIn(text))
      answer(response)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
  })
  const spansOf = (traceId: string): readonly ReceivedSpan[] =>
    spans.filter((span) => span.traceId === traceId)
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    texts,
    headers,
    spansOf,
    async atLeast(count, traceId) {
      await until(async () => spansOf(traceId).length >= count)
      return spansOf(traceId)
    },
  }
}

interface Exported {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[]
  }[]
}

function spansIn(text: string): readonly ReceivedSpan[] {
  const { resourceSpans }: Exported = JSON.parse(text)
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
}
