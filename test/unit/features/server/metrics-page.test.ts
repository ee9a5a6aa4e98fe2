import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachHistogram } from '../../../../src/kit/histograms.ts'
import { metricsPage } from '../../../../src/features/server/metrics-page.ts'
import { errorKinds } from '../../../../src/kit/errors.ts'
import { forEachMetric, metrics } from '../../../../src/kit/metrics.ts'
import { outcomes } from '../../../../src/delivery/attempts/attempt-log.ts'

const totals = forEachMetric((_metric, index) => index + 1)
const times = forEachHistogram(({ boundsMs }) => ({
  counts: [...boundsMs.map((_, bucket) => bucket), 7],
  sumMs: 1_500,
}))

test('every metric is listed with its value, counters with the ending _total and gauges without', async () => {
  const { contentType, text } = await metricsPage(totals, times, '1.2.3')
  assert.match(contentType, /^text\/plain; version=0\.0\.4/)
  const lines = text.split('\n')
  const labelled =
    /^postbote_(?:webhook_outcomes_total|poll_conflicts_total|updates_refused_total|requests_denied_total|bots)\{/
  const labelledValues = new Set(lines.filter((line) => labelled.test(line)).map(valueOf))
  for (const [index, { name, kind }] of metrics.entries()) {
    // The sum of the refused pushes, which are shown by their codes.
    if (name === 'updates_refused') continue
    const inBase = name.replace(/_us$/, '_seconds').replace(/_mib$/, '_bytes')
    const perUnit = name.endsWith('_us') ? 1e6 : name.endsWith('_mib') ? 2 ** -20 : 1
    const shown = `postbote_${inBase}${kind === 'counter' ? '_total' : ''}`
    const isThere =
      lines.includes(`${shown} ${(index + 1) / perUnit}`) &&
      text.includes(`# TYPE ${shown} ${kind}`)
    assert.ok(isThere || labelledValues.has(index + 1), name)
  }
})

test('the version of the server is a label', async () => {
  const { text } = await metricsPage(totals, times, '1.2.3')
  assert.ok(text.includes('\npostbote_build_info{version="1.2.3"} 1\n'))
})

test('outcomes are one metric, with the same names as those of a bot', async () => {
  const { text } = await metricsPage(totals, times, '1.2.3')
  const labels = [...text.matchAll(/^postbote_webhook_outcomes_total\{outcome="(\w+)"\} \d+$/gm)]
  assert.equal(labels.length, outcomes.length)
  assert.deepEqual(new Set(labels.map(([, label]) => label)), new Set<unknown>(outcomes))
  assert.ok(text.includes(`{outcome="rejected"} ${totals.webhook_rejected}\n`))
  assert.ok(text.includes(`{outcome="delivered"} ${totals.updates_delivered}\n`))
})

test('calls refused with 409 are one metric with the rule that refused them', async () => {
  const { text } = await metricsPage(totals, times, '1.2.3')
  assert.ok(
    text.includes(
      `postbote_poll_conflicts_total{rule="higher_offset"} ${totals.polls_refused_higher_offset}\n`,
    ),
  )
  assert.equal(text.match(/^postbote_poll_conflicts_total\{rule="\w+"\} \d+$/gm)?.length, 4)
})

test('refused pushes are one metric with the code of their error, and other codes are counted, too', async () => {
  const { text } = await metricsPage(totals, times, '1.2.3')
  assert.ok(text.includes(`${refusedName('QUEUE_FULL')} ${totals.updates_refused_queue_full}\n`))
  assert.ok(text.includes(`${refusedName('OTHER')} ${totals.updates_refused_other}\n`))
  const codes = [...text.matchAll(/^postbote_updates_refused_total\{code="(\w+)"\}/gm)]
  for (const [, code = ''] of codes) assert.ok(code === 'OTHER' || code in errorKinds, code)
  // Without a label, it would count everything twice.
  assert.doesNotMatch(text, /^postbote_updates_refused_total \d/m)
})

test('bots are one metric with the health of their webhook', async () => {
  const { text } = await metricsPage(totals, times, '1.2.3')
  for (const health of ['healthy', 'degraded', 'failing', 'paused'] as const) {
    assert.ok(text.includes(`postbote_bots{health="${health}"} ${totals[`bots_${health}`]}\n`))
  }
  assert.ok(text.includes(`postbote_bots{health="none"} ${totals.bots_polling}\n`))
})

function refusedName(code: string): string {
  return `postbote_updates_refused_total{code="${code}"}`
}

function valueOf(line: string): number {
  return Number(line.split(' ')[1])
}

test('a histogram has cumulative buckets in seconds, and rows with one name are one metric with a label', async () => {
  const { text } = await metricsPage(totals, times, '1.2.3')
  const lines = text.split('\n').filter((line) => line.includes('postbote_delivery_seconds'))
  assert.equal(lines.filter((line) => line.startsWith('# TYPE')).length, 1)
  for (const mode of ['polling', 'webhook']) {
    const own = lines.filter((line) => line.includes(`mode="${mode}"`))
    assert.ok(own.includes(`postbote_delivery_seconds_bucket{mode="${mode}",le="0.0025"} 1`))
    assert.ok(own.includes(`postbote_delivery_seconds_bucket{mode="${mode}",le="0.005"} 3`))
    assert.ok(own.includes(`postbote_delivery_seconds_bucket{mode="${mode}",le="86400"} 210`))
    assert.ok(own.includes(`postbote_delivery_seconds_bucket{mode="${mode}",le="+Inf"} 217`))
    assert.ok(own.includes(`postbote_delivery_seconds_count{mode="${mode}"} 217`))
    assert.ok(own.includes(`postbote_delivery_seconds_sum{mode="${mode}"} 1.5`))
  }
  assert.ok(text.includes('\npostbote_sync_seconds_bucket{le="0.0001"} 0\n'))
  assert.ok(text.includes('\npostbote_sync_seconds_sum 1.5\n'))
})
