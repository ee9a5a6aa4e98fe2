/**
 * GET /metrics: the counters of all workers in Prometheus' text format. The worker that serves the request reads the
 * sums from shared memory, so one scrape covers all workers.
 */
import { Counter, Gauge, Registry } from 'prom-client'
import { conflictMetrics, type MetricName, metrics, outcomeMetrics } from '../metrics.ts'

export interface MetricsPage {
  readonly contentType: string
  readonly text: string
}

/** The outcomes of deliveries are one metric with a label instead of one metric each; `delivered` also has its own metric. */
const { delivered: _shown, ...otherOutcomes } = outcomeMetrics
const shownWithLabel: ReadonlySet<MetricName> = new Set([
  ...Object.values(otherOutcomes),
  ...Object.values(conflictMetrics),
])

export async function metricsPage(
  totals: Readonly<Record<MetricName, number>>,
): Promise<MetricsPage> {
  const registry = new Registry()
  const registers = [registry]
  const outcomes = new Counter({
    name: 'postbote_webhook_outcomes_total',
    help: 'Deliveries to webhooks by their outcome: attempts, and updates that expired before the next attempt.',
    labelNames: ['outcome'],
    registers,
  })
  for (const [outcome, name] of Object.entries(outcomeMetrics)) {
    outcomes.inc({ outcome }, totals[name])
  }
  const conflicts = new Counter({
    name: 'postbote_poll_conflicts_total',
    help: 'getUpdates calls that got 409, by the rule that refused them.',
    labelNames: ['rule'],
    registers,
  })
  for (const [rule, name] of Object.entries(conflictMetrics)) {
    conflicts.inc({ rule }, totals[name])
  }
  for (const { name, kind, help } of metrics) {
    if (kind === 'gauge') {
      new Gauge({ name: `postbote_${name}`, help, registers }).set(totals[name])
    } else if (!shownWithLabel.has(name)) {
      new Counter({ name: `postbote_${name}_total`, help, registers }).inc(totals[name])
    }
  }
  return { contentType: registry.contentType, text: await registry.metrics() }
}
