/**
 * The Piscina task that sends spans to an OTLP endpoint, with the library of OpenTelemetry. It alone loads that library, so a
 * server that sends no spans never does. The exporter reads the standard variables itself: where to, with which headers, and
 * how long a request may take. It repeats a request that the endpoint asks it to, within that time.
 */
import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { systemClock } from '../src/kit/clock.ts'
import { kib } from '../src/kit/limits.ts'
import { AnswerRefused } from '../src/delivery/outgoing/answer-meter.ts'
import { meterRequests } from '../src/delivery/outgoing/meter-requests.ts'
import type { SpanBatch } from '../src/features/tracing/span-exporter.ts'
import type { Span } from '../src/kit/tracing/tracer.ts'

const kinds = {
  push: SpanKind.PRODUCER,
  wait: SpanKind.INTERNAL,
  deliver: SpanKind.CLIENT,
} as const satisfies Readonly<Record<Span['name'], SpanKind>>

type Exporter = JsonExporter | ProtobufExporter
type ReadableSpan = Parameters<Exporter['export']>[0][number]
type ExportResult = Parameters<Parameters<Exporter['export']>[1]>[0]

/** An answer of the endpoint may have this many bytes: it says how many spans were refused, and why. */
const otlpAnswerBytesMax = 64 * kib
/** An answer must be complete after this time, because a byte now and then holds it open for ever. Chosen: six times what the library waits for the next byte. */
const otlpAnswerTimeoutMs = 60_000

// The library reads up to 4 MiB in pieces of any size, and limits only the time between two of them.
meterRequests({ clock: systemClock, bytesMax: otlpAnswerBytesMax, timeoutMs: otlpAnswerTimeoutMs })

/** One for the protocol that is used; it keeps its connection. */
const exporters = new Map<SpanBatch['protocol'], Exporter>()

/** Returns true, or why the endpoint has not accepted the spans. */
export default async function exportSpans({ protocol, spans }: SpanBatch): Promise<string | true> {
  const exporter = exporters.get(protocol) ?? exporterOf(protocol)
  exporters.set(protocol, exporter)
  const readable = spans.map((span) => readableSpan(span))
  const result = await new Promise<ExportResult>((resolve) => {
    exporter.export(readable, resolve)
  })
  return result.error === undefined ? true : reasonOf(result.error)
}

function exporterOf(protocol: SpanBatch['protocol']): Exporter {
  return protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter()
}

/** What the variables say about this service; its name is postbote if they do not. */
const resource = defaultResource()
  .merge(resourceFromAttributes({ 'service.name': 'postbote' }))
  .merge(detectResources({ detectors: [envDetector] }))

function readableSpan(span: Span): ReadableSpan {
  const { name, traceId, spanId, parentId, startMs, endMs, isError, attributes } = span
  const traceFlags = TraceFlags.SAMPLED
  return {
    name,
    kind: kinds[name],
    spanContext: () => ({ traceId, spanId, traceFlags }),
    parentSpanContext: { traceId, spanId: parentId, traceFlags, isRemote: true },
    startTime: highResolution(startMs),
    endTime: highResolution(endMs),
    duration: highResolution(Math.max(endMs - startMs, 0)),
    status: { code: isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: 'postbote' },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

/** Seconds and nanoseconds. */
function highResolution(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)]
}

/** The text of an error may have the body of the response, which is the business of the endpoint alone. */
function reasonOf(error: unknown): string {
  if (error instanceof AnswerRefused) return `the endpoint sent ${error.message}`
  if (!(error instanceof Error)) return 'the endpoint did not accept them'
  const code = 'code' in error ? error.code : undefined
  // The library has no code for a time that is over, nor for answers that ask to come again later.
  if (code === undefined && error.name === 'Error')
    return 'the endpoint did not accept them in time'
  if (typeof code === 'string' && code.startsWith('HPE_')) {
    return `the endpoint sent what is not HTTP/1.1 (${code})`
  }
  return typeof code === 'string' || typeof code === 'number' ? `${error.name} ${code}` : error.name
}
