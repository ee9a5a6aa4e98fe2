import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMetricsText } from '../../../../src/page/server/rate-meter.ts'
import { metricsPage } from '../../../../src/features/server/metrics-page.ts'
import { forEachMetric } from '../../../../src/kit/metrics.ts'
import { noTimes } from '../../../support/kit/no-times.ts'

test('the page reads every metric of /metrics, and adds up those with labels', async () => {
  const { text } = await metricsPage(
    forEachMetric(() => 2),
    noTimes,
    '1.0.0',
  )
  const metrics = readMetricsText(text)
  assert.equal(metrics.get('updates_pushed_total'), 2)
  assert.equal(metrics.get('event_loop_delay_max_seconds'), 0.000_002)
  assert.equal(metrics.get('webhook_outcomes_total'), 14)
  // The buckets, the sum and the count of a histogram have names of their own.
  const histograms = text.match(/^# TYPE \w+ histogram/gm)?.length ?? 0
  assert.equal(metrics.size, (text.match(/^# TYPE /gm)?.length ?? 0) + 2 * histograms)
})
