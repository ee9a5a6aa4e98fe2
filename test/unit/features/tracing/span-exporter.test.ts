import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  lastSpansMs,
  type SpanBatch,
  SpanExporter,
} from '../../../../src/features/tracing/span-exporter.ts'
import type { MetricName } from '../../../../src/kit/metrics.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { silentLog } from '../../../support/kit/silent-log.ts'
import { oneSpan } from '../../../support/network/span-collector.ts'

const settings = { protocol: 'http/json', queueMax: 5, batchMax: 2, delayMs: 1_000 } as const
type Answer = (error: string | undefined) => void

/** An endpoint that answers when the test wants it. */
function setUp() {
  const clock = new FakeClock()
  const sums = new Map<MetricName, number>()
  const counters = {
    add: (name: MetricName, by: number) => void sums.set(name, (sums.get(name) ?? 0) + by),
    observe: () => undefined,
  }
  const warnings: object[] = []
  const log = { ...silentLog, warn: (fields: object) => void warnings.push(fields) }
  const batches: SpanBatch[] = []
  const answers: Answer[] = []
  const send = (batch: SpanBatch): Promise<string | undefined> => {
    batches.push(batch)
    return new Promise((resolve) => answers.push(resolve))
  }
  const exporter = new SpanExporter({ clock, counters, log }, settings, send)
  const report = (count: number): void => {
    for (let nth = 0; nth < count; nth++) exporter.report(oneSpan)
  }
  const sizes = (): number[] => batches.map(({ spans }) => spans.length)
  const [exported, dropped] = (['exported', 'dropped'] as const).map(
    (name) => (): number => sums.get(`trace_spans_${name}`) ?? 0,
  )
  assert(exported !== undefined && dropped !== undefined)
  return { clock, exporter, report, sizes, answers, exported, dropped, warnings }
}

test('spans are sent together after the delay, or as soon as a batch is full', async () => {
  const { clock, report, sizes, answers, exported } = setUp()
  report(1)
  await clock.advance(settings.delayMs - 1)
  assert.deepEqual(sizes(), [])
  await clock.advance(1)
  assert.deepEqual(sizes(), [1])
  answers[0]?.(undefined)
  await clock.advance(0)
  assert.equal(exported(), 1)
  report(2)
  assert.deepEqual(sizes(), [1, 2])
})

test('while an endpoint hangs, as many spans wait as the queue has, and further ones are dropped and counted', async () => {
  const { clock, report, sizes, answers, exported, dropped } = setUp()
  report(2 + settings.queueMax + 3)
  await clock.advance(60_000)
  assert.deepEqual(sizes(), [2])
  assert.deepEqual([exported(), dropped()], [0, 3])
  answers[0]?.(undefined)
  await clock.advance(0)
  answers[1]?.(undefined)
  await clock.advance(0)
  answers[2]?.(undefined)
  await clock.advance(0)
  // The last one waits for others.
  assert.deepEqual(sizes(), [2, 2, 2])
  await clock.advance(settings.delayMs)
  assert.deepEqual(sizes(), [2, 2, 2, 1])
  assert.deepEqual([exported(), dropped()], [6, 3])
})

test('spans that an endpoint does not accept are dropped and counted, and the log says so once a minute', async () => {
  const { clock, report, answers, exported, dropped, warnings } = setUp()
  for (let nth = 0; nth < 3; nth++) {
    report(2)
    answers[nth]?.('HTTP 503')
    await clock.advance(1_000)
  }
  assert.deepEqual([exported(), dropped()], [0, 6])
  assert.deepEqual(warnings, [{ error: 'HTTP 503' }])
  await clock.advance(60_000)
  report(2)
  answers[3]?.('HTTP 503')
  await clock.advance(0)
  assert.equal(warnings.length, 2)
})

test('a worker that ends sends its last spans, and waits no longer than a moment for an endpoint that hangs', async () => {
  const good = setUp()
  good.report(3)
  const closed = good.exporter.close()
  for (let nth = 0; nth < 2; nth++) {
    await good.clock.advance(0)
    good.answers[nth]?.(undefined)
  }
  await good.clock.advance(0)
  await closed
  assert.deepEqual([good.exported(), good.dropped()], [3, 0])
  good.report(1)
  assert.equal(good.dropped(), 1)
  const hanging = setUp()
  hanging.report(3)
  let isClosed = false
  const closing = hanging.exporter.close().then(() => (isClosed = true))
  await hanging.clock.advance(lastSpansMs - 1)
  assert.equal(isClosed, false)
  await hanging.clock.advance(1)
  await closing
  assert.equal(hanging.dropped(), 1)
})
