import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metricsPage } from '../../../src/private-api/metrics-page.ts'
import { forEachMetric, metrics } from '../../../src/metrics.ts'
import { outcomes } from '../../../src/webhook/attempt-log.ts'

const totals = forEachMetric((_metric, index) => index + 1)

test('every metric is listed with its value, counters with the ending _total and gauges without', async () => {
  const { contentType, text } = await metricsPage(totals)
  assert.match(contentType, /^text\/plain; version=0\.0\.4/)
  const lines = text.split('\n')
  const labelled = /^postbote_(?:webhook_outcomes|poll_conflicts)_total\{/
  const labelledValues = new Set(lines.filter((line) => labelled.test(line)).map(valueOf))
  for (const [index, { name, kind }] of metrics.entries()) {
    const shown = `postbote_${name}${kind === 'counter' ? '_total' : ''}`
    const isThere =
      lines.includes(`${shown} ${index + 1}`) && text.includes(`# TYPE ${shown} ${kind}`)
    assert.ok(isThere || labelledValues.has(index + 1), name)
  }
})

test('outcomes are one metric, with the same names as those of a bot', async () => {
  const { text } = await metricsPage(totals)
  const labels = [...text.matchAll(/^postbote_webhook_outcomes_total\{outcome="(\w+)"\} \d+$/gm)]
  assert.equal(labels.length, outcomes.length)
  assert.deepEqual(new Set(labels.map(([, label]) => label)), new Set<unknown>(outcomes))
  assert.ok(text.includes(`{outcome="rejected"} ${totals.webhook_rejected}\n`))
  assert.ok(text.includes(`{outcome="delivered"} ${totals.updates_delivered}\n`))
})

test('calls refused with 409 are one metric with the rule that refused them', async () => {
  const { text } = await metricsPage(totals)
  assert.ok(
    text.includes(
      `postbote_poll_conflicts_total{rule="higher_offset"} ${totals.polls_refused_higher_offset}\n`,
    ),
  )
  assert.equal(text.match(/^postbote_poll_conflicts_total\{rule="\w+"\} \d+$/gm)?.length, 4)
})

function valueOf(line: string): number {
  return Number(line.split(' ')[1])
}
