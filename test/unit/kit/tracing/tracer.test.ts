import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextTraceparent, spanIdOf } from '../../../../src/kit/tracing/traceparent.ts'
import { type Span, Tracer } from '../../../../src/kit/tracing/tracer.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const sampled = `00-${traceId}-b7ad6b7169203331-01`
const of = { queue: 4711, botId: 4711, isTest: false, updateId: 7, startMs: 1, endMs: 2 }
const stored = { result: 'stored', isError: false }
const attempt = { outcome: 'delivered', status: 200, host: 'bot.example' }

function setUp(): { readonly tracer: Tracer; readonly spans: Span[] } {
  const spans: Span[] = []
  return { spans, tracer: new Tracer((span) => void spans.push(span)) }
}

test('the push is a child of the span of its producer, and the wait and each delivery are children of the push', () => {
  const { tracer, spans } = setUp()
  const sent = tracer.attempt(sampled)
  tracer.pushed({ ...of, ...stored, traceparent: sampled })
  tracer.waited({ ...of, traceparent: sampled, mode: 'webhook' })
  tracer.delivered({ ...of, ...attempt, traceparent: sent })
  const [push, wait, deliver] = spans
  assert.deepEqual(
    spans.map(({ name, traceId: id, isError }) => [name, id, isError]),
    [
      ['push', traceId, false],
      ['wait', traceId, false],
      ['deliver', traceId, false],
    ],
  )
  assert.equal(push?.parentId, spanIdOf(sampled))
  assert.deepEqual([wait?.parentId, deliver?.parentId], [push?.spanId, push?.spanId])
  assert.equal(deliver?.spanId, spanIdOf(sent))
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, 3)
})

test('a trace that its producer does not sample has no spans, and is passed on', () => {
  const { tracer, spans } = setUp()
  const traceparent = `00-${traceId}-b7ad6b7169203331-00`
  tracer.pushed({ ...of, ...stored, traceparent })
  tracer.waited({ ...of, traceparent, mode: 'polling' })
  tracer.delivered({ ...of, ...attempt, traceparent: nextTraceparent(traceparent) })
  assert.deepEqual(spans, [])
  assert.match(tracer.attempt(traceparent), /-00$/)
})

test('a push that stored nothing has a span of its own, with the reason', () => {
  const { tracer, spans } = setUp()
  const refused = { ...of, updateId: undefined, result: 'QUEUE_FULL', isError: true }
  tracer.pushed({ ...of, ...stored, traceparent: sampled })
  tracer.pushed({ ...of, result: 'duplicate', isError: false, traceparent: sampled })
  tracer.pushed({ ...refused, traceparent: sampled })
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, 3)
  assert.deepEqual(
    spans.map(({ isError, attributes }) => [isError, attributes['postbote.result']]),
    [
      [false, 'stored'],
      [false, 'duplicate'],
      [true, 'QUEUE_FULL'],
    ],
  )
})

test('a delivery that failed is an error, and has a status only if there was a response', () => {
  const { tracer, spans } = setUp()
  const failed = { ...of, host: 'bot.example', traceparent: sampled }
  tracer.delivered({ ...failed, outcome: 'rejected', status: 503 })
  tracer.delivered({ ...failed, outcome: 'timed_out', status: 0 })
  assert.deepEqual(
    spans.map(({ isError, attributes }) => [isError, attributes['http.response.status_code']]),
    [
      [true, 503],
      [true, undefined],
    ],
  )
})

test('without an endpoint for spans there are none', () => {
  const tracer = new Tracer()
  assert.equal(tracer.hasSpans, false)
  tracer.pushed({ ...of, ...stored, traceparent: sampled })
  assert.notEqual(tracer.attempt(sampled), sampled)
})
