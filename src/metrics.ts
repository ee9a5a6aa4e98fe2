/**
 * All metrics that workers count in shared memory. Each one is used somewhere. The position of a metric in this list
 * is its cell in a slot (metric-slot.ts), and the old and the new worker share the file during a reload: append only,
 * do not reorder, at most `metricsMax` entries.
 *
 * A counter only grows and outlives its worker. A gauge describes the present state of one process and ends with it.
 * Code in queue, webhook and http declares a small interface with the names it counts instead of importing this file.
 */

interface Metric {
  readonly name: string
  readonly kind: 'counter' | 'gauge'
  /** The HELP line of /metrics. */
  readonly help: string
  /** /metrics shows the highest value of all workers. Other metrics are summed. */
  readonly isWorst?: boolean
}

export const metrics = [
  { name: 'updates_pushed', kind: 'counter', help: 'Updates stored.' },
  {
    name: 'updates_filtered',
    kind: 'counter',
    help: 'Pushed updates of types the bot did not ask for.',
  },
  { name: 'updates_refused', kind: 'counter', help: 'Pushes answered with an error.' },
  {
    name: 'updates_confirmed',
    kind: 'counter',
    help: 'Updates removed by the offset of getUpdates.',
  },
  { name: 'updates_delivered', kind: 'counter', help: 'Updates a webhook accepted with 2xx.' },
  {
    name: 'updates_expired',
    kind: 'counter',
    help: 'Updates removed because their time had passed.',
  },
  { name: 'updates_dropped', kind: 'counter', help: 'Updates dropped by request of their bot.' },
  { name: 'polls_answered', kind: 'counter', help: 'getUpdates calls answered with ok.' },
  { name: 'polls_refused', kind: 'counter', help: 'getUpdates calls answered with 409.' },
  {
    name: 'webhook_attempts',
    kind: 'counter',
    help: 'Attempts to deliver to webhooks: requests, and connections that did not come about.',
  },
  { name: 'webhook_failures', kind: 'counter', help: 'Those that did not end in 2xx.' },
  { name: 'requests_bot', kind: 'counter', help: 'Requests on the bot API.' },
  {
    name: 'requests_forwarded',
    kind: 'counter',
    help: 'Requests passed on to the owner of their bot.',
  },
  { name: 'store_groups', kind: 'counter', help: 'Synced batches written to the shards.' },
  { name: 'store_operations', kind: 'counter', help: 'Operations in those batches.' },
  { name: 'store_failures', kind: 'counter', help: 'Writes or syncs that failed.' },
  { name: 'bots_loaded', kind: 'gauge', help: 'Bots held in memory.' },
  { name: 'polls_waiting', kind: 'gauge', help: 'getUpdates calls that wait for updates.' },
  { name: 'webhook_connections_active', kind: 'gauge', help: 'Open connections to webhooks.' },
  {
    name: 'shards_poisoned',
    kind: 'gauge',
    help: 'Shards that accept nothing after a failed write.',
  },
  {
    name: 'webhook_rejected',
    kind: 'counter',
    help: 'Attempts answered by a webhook, but not well.',
  },
  { name: 'webhook_timed_out', kind: 'counter', help: 'Attempts that nothing came of in time.' },
  {
    name: 'webhook_connection_failed',
    kind: 'counter',
    help: 'Attempts without a connection, or with one that broke.',
  },
  {
    name: 'webhook_tls_failed',
    kind: 'counter',
    help: 'Attempts whose TLS handshake or certificate was no good.',
  },
  {
    name: 'webhook_refused_for_good',
    kind: 'counter',
    help: 'Attempts a webhook answered with the order never to send the update again.',
  },
  {
    name: 'webhook_expired',
    kind: 'counter',
    help: 'Updates a webhook did not get before their time had passed.',
  },
  { name: 'requests_proxied', kind: 'counter', help: 'Calls passed on to the upstream server.' },
  { name: 'upstream_failures', kind: 'counter', help: 'Those that it did not answer.' },
  {
    name: 'webhook_replies_sent',
    kind: 'counter',
    help: 'Methods named in answers of webhooks that the upstream server answered with 2xx.',
  },
  {
    name: 'webhook_replies_failed',
    kind: 'counter',
    help: 'Those it answered otherwise, or not at all.',
  },
  {
    name: 'webhook_replies_dropped',
    kind: 'counter',
    help: 'Those that were not sent, for want of room, time or a token.',
  },
  {
    name: 'updates_dead_lettered',
    kind: 'counter',
    help: 'Updates that a webhook did not get and that became dead letters.',
  },
  {
    name: 'dead_letters_replayed',
    kind: 'counter',
    help: 'Dead letters pushed again as new updates.',
  },
  {
    name: 'dead_letters_evicted',
    kind: 'counter',
    help: 'Dead letters removed because there were too many of their queue.',
  },
  {
    name: 'dead_letters_expired',
    kind: 'counter',
    help: 'Dead letters removed after their seven days.',
  },
  {
    name: 'dead_letters_dropped',
    kind: 'counter',
    help: 'Dead letters dropped by the operator, or with their bot.',
  },
  {
    name: 'webhooks_turned_away',
    kind: 'counter',
    help: 'Tries of webhooks without a connection to open one while all that are allowed were open.',
  },
  {
    name: 'connections_refused',
    kind: 'counter',
    help: 'Client connections ended because there were too many: refused with 503, or given up before their first request.',
  },
  {
    name: 'updates_duplicate',
    kind: 'counter',
    help: 'Pushes answered with the update that their idempotency key had stored before.',
  },
  {
    name: 'event_loop_delay_max_us',
    kind: 'gauge',
    help: 'The longest that work of one worker waited for its event loop in the last minute.',
    isWorst: true,
  },
  {
    name: 'event_loop_delay_p99_us',
    kind: 'gauge',
    help: 'The 99th percentile of the same, of the worst ten seconds of that minute.',
    isWorst: true,
  },
  {
    name: 'body_bytes_held',
    kind: 'gauge',
    help: 'Memory of request bodies that have not arrived whole, or wait for the worker of their bot.',
  },
  {
    name: 'bodies_refused',
    kind: 'counter',
    help: 'Requests refused with 503 because such bodies took too much memory.',
  },
  {
    name: 'shards_broken',
    kind: 'gauge',
    help: 'Shards that are set aside because their files are damaged.',
  },
  {
    name: 'polls_refused_webhook_active',
    kind: 'counter',
    help: 'getUpdates calls refused because a webhook is set.',
  },
  {
    name: 'polls_refused_webhook_set',
    kind: 'counter',
    help: 'getUpdates calls that waited when a webhook was set.',
  },
  {
    name: 'polls_refused_newer_poll',
    kind: 'counter',
    help: 'getUpdates calls that a later call of the same bot ended.',
  },
  {
    name: 'polls_refused_higher_offset',
    kind: 'counter',
    help: 'getUpdates calls refused because a call with a higher offset waits.',
  },
] as const satisfies readonly Metric[]

export type MetricName = (typeof metrics)[number]['name']

/**
 * The counter of each outcome of a delivery (webhook/attempt-log.ts). /metrics shows them as one metric with a label.
 */
export const outcomeMetrics = {
  delivered: 'updates_delivered',
  rejected: 'webhook_rejected',
  timed_out: 'webhook_timed_out',
  connection_failed: 'webhook_connection_failed',
  tls_failed: 'webhook_tls_failed',
  refused_for_good: 'webhook_refused_for_good',
  expired: 'webhook_expired',
} as const satisfies Readonly<Record<string, MetricName>>

/** Counts each rule that refuses a poll (queue/poll.ts); /metrics shows them as one metric with a label. */
export const conflictMetrics = {
  webhook_active: 'polls_refused_webhook_active',
  webhook_set: 'polls_refused_webhook_set',
  newer_poll: 'polls_refused_newer_poll',
  higher_offset: 'polls_refused_higher_offset',
} as const satisfies Readonly<Record<string, MetricName>>

export type GaugeName = Extract<(typeof metrics)[number], { readonly kind: 'gauge' }>['name']

/** Builds a record that has one value for each metric. */
export function forEachMetric<Value>(
  valueOf: (metric: (typeof metrics)[number], index: number) => Value,
): Record<MetricName, Value> {
  const values = Object.fromEntries(
    metrics.map((metric, index) => [metric.name, valueOf(metric, index)]),
  )
  // The type of Object.fromEntries does not keep the names.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return values as Record<MetricName, Value>
}
