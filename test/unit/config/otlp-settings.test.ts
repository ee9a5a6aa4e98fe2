import assert from 'node:assert/strict'
import { test } from 'node:test'
import { otlpProblems, otlpSettings } from '../../../src/config/otlp-settings.ts'

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }

test('spans are sent if an endpoint is set, by the defaults of the standard', () => {
  const usual = { protocol: 'http/json', queueMax: 2_048, batchMax: 512, delayMs: 5_000 }
  assert.deepEqual(otlpSettings(endpoint), usual)
  const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector.example/x' }
  assert.deepEqual(otlpSettings(own), usual)
  assert.deepEqual(
    otlpSettings({
      ...endpoint,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_BSP_MAX_QUEUE_SIZE: '10',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '5',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    }),
    { protocol: 'http/protobuf', queueMax: 10, batchMax: 5, delayMs: 100 },
  )
})

test('no spans are sent without an endpoint, or where the standard variables turn them off', () => {
  for (const off of [
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { ...endpoint, OTEL_SDK_DISABLED: 'TRUE' },
    { ...endpoint, OTEL_TRACES_EXPORTER: 'none' },
  ]) {
    assert.equal(otlpSettings(off), undefined, JSON.stringify(off))
    assert.deepEqual(otlpProblems(off), [])
  }
})

test('a bad variable is refused by name, and its value is not shown', () => {
  assert.deepEqual(otlpProblems(endpoint), [])
  const bad = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'ftp://user:secret@collector.example',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc',
    OTEL_BSP_MAX_QUEUE_SIZE: '0',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: 'many',
    OTEL_BSP_SCHEDULE_DELAY: '-1',
  }
  const problems = otlpProblems(bad)
  assert.deepEqual(
    problems.map((problem) => problem.split(':')[0]),
    Object.keys(bad),
  )
  for (const value of Object.values(bad)) assert(!problems.join('\n').includes(`got ${value}`))
  assert(!problems.join('\n').includes('secret'))
})
