/**
 * GET /metrics: what all workers have counted, in Prometheus' text format. Whichever worker is asked reads the
 * sums from the shared memory, so one scrape sees the whole server.
 */
import { Counter, Gauge, Registry } from 'prom-client'
import { type MetricName, metrics } from '../metrics.ts'

export interface MetricsPage {
  readonly contentType: string
  readonly text: string
}

/** How deliveries ended is one metric with a label, not one for each. */
const outcomeOf: ReadonlyMap<MetricName, string> = new Map<MetricName, string>([
  ['updates_delivered', 'delivered'],
  ['webhook_rejected', 'rejected'],
  ['webhook_timed_out', 'timed_out'],
  ['webhook_connection_failed', 'connection_failed'],
  ['webhook_tls_failed', 'tls_failed'],
  ['webhook_aborted', 'refused_for_good'],
  ['webhook_expired', 'expired'],
])

export async function metricsPage(
  totals: Readonly<Record<MetricName, number>>,
): Promise<MetricsPage> {
  const registry = new Registry()
  const registers = [registry]
  const outcomes = new Counter({
    name: 'postbote_webhook_outcomes_total',
    help: 'Deliveries to webhooks by their outcome: attempts, and updates that expired before another one.',
    labelNames: ['outcome'],
    registers,
  })
  for (const { name, kind, help } of metrics) {
    const outcome = outcomeOf.get(name)
    if (outcome !== undefined) outcomes.inc({ outcome }, totals[name])
    if (kind === 'gauge') {
      new Gauge({ name: `postbote_${name}`, help, registers }).set(totals[name])
    } else if (outcome === undefined || name === 'updates_delivered') {
      new Counter({ name: `postbote_${name}_total`, help, registers }).inc(totals[name])
    }
  }
  return { contentType: registry.contentType, text: await registry.metrics() }
}
