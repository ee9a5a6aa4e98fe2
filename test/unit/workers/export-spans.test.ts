/** The thread that sends spans, called as a function. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import exportSpans from '../../../workers/export-spans.ts'
import type { Span } from '../../../src/kit/tracing/tracer.ts'
import { portOf } from '../../support/kit/port.ts'

const span: Span = {
  name: 'deliver',
  traceId: '1'.repeat(32),
  spanId: '2'.repeat(16),
  parentId: '3'.repeat(16),
  startMs: 1_800_000_000_000.25,
  endMs: 1_800_000_000_001,
  isError: true,
  attributes: { 'postbote.bot_id': 4711, 'server.address': 'bot.example' },
}

test('spans are sent in both protocols to the place that the standard variables name, and a refusal is told without its body', async (t) => {
  const requests: { path: string; type: string; body: Buffer }[] = []
  let status = 200
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { url: path = '', headers } = request
      requests.push({ path, type: headers['content-type'] ?? '', body: Buffer.concat(chunks) })
      response.writeHead(status).end(status === 200 ? '' : 'a secret of the endpoint')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = `http://127.0.0.1:${portOf(server)}/base`
  for (const protocol of ['http/json', 'http/protobuf'] as const) {
    assert.equal(await exportSpans({ protocol, spans: [span] }), true)
  }
  const [json, protobuf] = requests
  assert.deepEqual(
    requests.map(({ path, type }) => [path, type]),
    [
      ['/base/v1/traces', 'application/json'],
      ['/base/v1/traces', 'application/x-protobuf'],
    ],
  )
  assert(protobuf?.body.includes('bot.example'))
  const told = JSON.parse(json?.body.toString() ?? '').resourceSpans[0]
  const [sent] = told.scopeSpans[0].spans
  assert.deepEqual(
    [sent.name, sent.kind, sent.parentSpanId, sent.startTimeUnixNano, sent.status.code],
    ['deliver', 3, span.parentId, '1800000000000250000', 2],
  )
  status = 400
  assert.equal(await exportSpans({ protocol: 'http/json', spans: [span] }), 'OTLPExporterError 400')
})
