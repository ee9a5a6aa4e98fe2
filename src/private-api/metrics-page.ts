/**
 * GET /metrics: the counters of all workers in Prometheus' text format. The worker that serves the request reads the
 * sums from shared memory, so one scrape covers all workers. Shared memory holds whole numbers, so times are microseconds
 * there and seconds here, the base unit of Prometheus.
 */
import { Counter, Gauge, Registry } from 'prom-client'
import {
  conflictMetrics,
  deniedMetrics,
  fleetHealthMetrics,
  type MetricName,
  metrics,
  outcomeMetrics,
  refusalMetrics,
} from '../metrics.ts'

export interface MetricsPage {
  readonly contentType: string
  readonly text: string
}

/** The outcomes of deliveries are one metric with a label instead of one metric each; `delivered` also has its own metric. */
const { delivered: _shown, ...otherOutcomes } = outcomeMetrics
const shownWithLabel: ReadonlySet<MetricName> = new Set([
  ...Object.values(otherOutcomes),
  ...Object.values(conflictMetrics),
  ...Object.values(refusalMetrics),
  ...Object.values(fleetHealthMetrics),
  ...Object.values(deniedMetrics),
  // The sum of those by code.
  'updates_refused',
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
  const refused = new Counter({
    name: 'postbote_updates_refused_total',
    help: 'Pushes that got an error, by its code.',
    labelNames: ['code'],
    registers,
  })
  for (const [code, name] of Object.entries(refusalMetrics)) {
    refused.inc({ code }, totals[name])
  }
  const denied = new Counter({
    name: 'postbote_requests_denied_total',
    help: 'Requests on the private API that their key does not allow, by the code of the error.',
    labelNames: ['code'],
    registers,
  })
  for (const [code, name] of Object.entries(deniedMetrics)) {
    denied.inc({ code }, totals[name])
  }
  const bots = new Gauge({
    name: 'postbote_bots',
    help: 'Registered bots by their health. Without a webhook it is unpolled if updates wait and nobody polls, otherwise none.',
    labelNames: ['health'],
    registers,
  })
  for (const [health, name] of Object.entries(fleetHealthMetrics)) {
    bots.set({ health }, totals[name])
  }
  for (const { name, kind, help } of metrics) {
    if (shownWithLabel.has(name)) continue
    if (kind === 'gauge') {
      const isTime = name.endsWith('_us')
      const shown = isTime ? name.replace(/us$/, 'seconds') : name
      const value = isTime ? totals[name] / 1_000_000 : totals[name]
      new Gauge({ name: `postbote_${shown}`, help, registers }).set(value)
    } else {
      new Counter({ name: `postbote_${name}_total`, help, registers }).inc(totals[name])
    }
  }
  return { contentType: registry.contentType, text: await registry.metrics() }
}
