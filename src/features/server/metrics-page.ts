/**
 * GET /metrics: the counters of all workers in Prometheus' text format. The worker that serves the request reads the
 * sums from shared memory, so one scrape covers all workers. Shared memory holds whole numbers, so times are microseconds
 * there and seconds here, the base unit of Prometheus.
 */
import { Counter, Gauge, Registry } from 'prom-client'
import { type AllHistograms, histograms } from '../../kit/histograms.ts'
import { mib } from '../../kit/limits.ts'
import {
  conflictMetrics,
  deniedMetrics,
  fleetHealthMetrics,
  type MetricName,
  metrics,
  outcomeMetrics,
  refusalMetrics,
} from '../../kit/metrics.ts'

export interface MetricsPage {
  readonly contentType: string
  readonly text: string
}

interface LabelledMetric {
  readonly name: string
  readonly kind: 'counter' | 'gauge'
  readonly help: string
  readonly label: string
  /** For each value of the label, the metric that counts it. */
  readonly values: Readonly<Record<string, MetricName>>
}

/** What is one metric with a label instead of one metric each. */
const labelled: readonly LabelledMetric[] = [
  {
    name: 'postbote_webhook_outcomes_total',
    kind: 'counter',
    help: 'Deliveries to webhooks by their outcome: attempts, and updates that expired before the next attempt.',
    label: 'outcome',
    values: outcomeMetrics,
  },
  {
    name: 'postbote_poll_conflicts_total',
    kind: 'counter',
    help: 'getUpdates calls that got 409, by the rule that refused them.',
    label: 'rule',
    values: conflictMetrics,
  },
  {
    name: 'postbote_updates_refused_total',
    kind: 'counter',
    help: 'Pushes that got an error, by its code.',
    label: 'code',
    values: refusalMetrics,
  },
  {
    name: 'postbote_requests_denied_total',
    kind: 'counter',
    help: 'Requests on the private API that their key does not allow, by the code of the error.',
    label: 'code',
    values: deniedMetrics,
  },
  {
    name: 'postbote_bots',
    kind: 'gauge',
    help: 'Registered bots by the health of their webhook; none is for bots without one.',
    label: 'health',
    values: fleetHealthMetrics,
  },
]

const shownWithLabel = new Set<MetricName>(labelled.flatMap(({ values }) => Object.values(values)))
// It has its own metric, too.
shownWithLabel.delete(outcomeMetrics.delivered)
// The sum of those by code.
shownWithLabel.add('updates_refused')

const buildInfo = {
  name: 'postbote_build_info',
  help: 'The version of the worker that answers; always 1.',
}

export async function metricsPage(
  totals: Readonly<Record<MetricName, number>>,
  times: AllHistograms,
  version: string,
): Promise<MetricsPage> {
  const registry = new Registry()
  const registers = [registry]
  for (const { name, kind, help, label, values } of labelled) {
    const options = { name, help, labelNames: [label], registers }
    const metric = kind === 'gauge' ? new Gauge(options) : new Counter(options)
    for (const [value, total] of Object.entries(values))
      metric.inc({ [label]: value }, totals[total])
  }
  for (const { name, kind, help } of metrics) {
    if (shownWithLabel.has(name)) continue
    if (kind === 'gauge') {
      const { shown, value } = inBaseUnit(name, totals[name])
      new Gauge({ name: `postbote_${shown}`, help, registers }).set(value)
    } else {
      new Counter({ name: `postbote_${name}_total`, help, registers }).inc(totals[name])
    }
  }
  new Gauge({ ...buildInfo, labelNames: ['version'], registers }).set({ version }, 1)
  const text = `${await registry.metrics()}${histogramLines(times).join('\n')}\n`
  return { contentType: registry.contentType, text }
}

/** Shared memory has whole numbers of 32 bits. */
function inBaseUnit(
  name: MetricName,
  value: number,
): { readonly shown: string; readonly value: number } {
  if (name.endsWith('_us'))
    return { shown: name.replace(/us$/, 'seconds'), value: value / 1_000_000 }
  if (name.endsWith('_mib')) return { shown: name.replace(/mib$/, 'bytes'), value: value * mib }
  return { shown: name, value }
}

/** By hand, because a histogram of prom-client can only be filled one observation after the other. */
function histogramLines(times: AllHistograms): readonly string[] {
  const described = new Set<string>()
  return histograms.flatMap(({ name, metric, label = {}, help, boundsMs }) => {
    const full = `postbote_${metric}`
    const head = described.has(full) ? [] : [`# HELP ${full} ${help}`, `# TYPE ${full} histogram`]
    described.add(full)
    const labels = Object.entries(label).map(([key, value]) => `${key}="${value}"`)
    const labelText = labels.length === 0 ? '' : `{${labels.join(',')}}`
    const { counts, sumMs } = times[name]
    let sum = 0
    const buckets = counts.map((count, bucket) => {
      sum += count
      const bound = boundsMs[bucket]
      const le = `le="${bound === undefined ? '+Inf' : bound / 1_000}"`
      return `${full}_bucket{${[...labels, le].join(',')}} ${sum}`
    })
    const rest = [`${full}_sum${labelText} ${sumMs / 1_000}`, `${full}_count${labelText} ${sum}`]
    return [...head, ...buckets, ...rest]
  })
}
