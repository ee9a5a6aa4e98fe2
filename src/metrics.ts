/**
 * All metrics that workers count in shared memory. Each one is used somewhere. The position of a metric in this list
 * is its cell in a slot (metric-slot.ts), and the old and the new worker share the file during a reload: append only,
 * do not reorder, at most `metricsMax` entries.
 *
 * A counter only grows and outlives its worker. A gauge describes the present state of one process and ends with it.
 * Code in queue, webhook and http declares a small interface with the names it counts instead of importing this file.
 */

import type { ErrorCode } from './errors.ts'

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
    help: 'Pushed updates that were not stored because the bot does not want their type.',
  },
  { name: 'updates_refused', kind: 'counter', help: 'Pushes that got an error.' },
  {
    name: 'updates_confirmed',
    kind: 'counter',
    help: 'Updates that the offset of a getUpdates call confirmed.',
  },
  { name: 'updates_delivered', kind: 'counter', help: 'Updates that a webhook accepted with 2xx.' },
  {
    name: 'updates_expired',
    kind: 'counter',
    help: 'Updates removed because they expired.',
  },
  {
    name: 'updates_dropped',
    kind: 'counter',
    help: 'Updates dropped at the request of their bot.',
  },
  {
    name: 'polls_answered',
    kind: 'counter',
    help: 'getUpdates calls that got updates or an empty list.',
  },
  { name: 'polls_refused', kind: 'counter', help: 'getUpdates calls that got 409.' },
  {
    name: 'webhook_attempts',
    kind: 'counter',
    help: 'Attempts to deliver to webhooks: requests, and connections that could not be opened.',
  },
  {
    name: 'webhook_failures',
    kind: 'counter',
    help: 'Attempts to deliver to webhooks that did not end in 2xx.',
  },
  { name: 'requests_bot', kind: 'counter', help: 'Requests on the bot API.' },
  {
    name: 'requests_forwarded',
    kind: 'counter',
    help: 'Requests forwarded to the worker that owns their bot.',
  },
  { name: 'store_groups', kind: 'counter', help: 'Synced batches written to the shards.' },
  { name: 'store_operations', kind: 'counter', help: 'Operations in the synced batches.' },
  { name: 'store_failures', kind: 'counter', help: 'Writes and syncs that failed.' },
  { name: 'bots_loaded', kind: 'gauge', help: 'Bots held in memory.' },
  { name: 'polls_waiting', kind: 'gauge', help: 'getUpdates calls that wait for updates.' },
  { name: 'webhook_connections_active', kind: 'gauge', help: 'Open connections to webhooks.' },
  {
    name: 'shards_poisoned',
    kind: 'gauge',
    help: 'Shards that refuse all changes after a failed write.',
  },
  {
    name: 'webhook_rejected',
    kind: 'counter',
    help: 'Attempts to which a webhook responded, but not with 2xx.',
  },
  { name: 'webhook_timed_out', kind: 'counter', help: 'Attempts that timed out.' },
  {
    name: 'webhook_connection_failed',
    kind: 'counter',
    help: 'Attempts whose connection failed or broke.',
  },
  {
    name: 'webhook_tls_failed',
    kind: 'counter',
    help: 'Attempts whose TLS handshake or certificate failed.',
  },
  {
    name: 'webhook_refused_for_good',
    kind: 'counter',
    help: 'Attempts in which a webhook rejected the update permanently.',
  },
  {
    name: 'webhook_expired',
    kind: 'counter',
    help: 'Updates that expired before a webhook took them.',
  },
  { name: 'requests_proxied', kind: 'counter', help: 'Calls forwarded to the upstream server.' },
  {
    name: 'upstream_failures',
    kind: 'counter',
    help: 'Calls to which the upstream server did not respond.',
  },
  {
    name: 'webhook_replies_sent',
    kind: 'counter',
    help: 'Methods from responses of webhooks that the upstream server accepted with 2xx.',
  },
  {
    name: 'webhook_replies_failed',
    kind: 'counter',
    help: 'Methods from responses of webhooks that the upstream server did not accept.',
  },
  {
    name: 'webhook_replies_dropped',
    kind: 'counter',
    help: 'Methods from responses of webhooks that were not sent, because memory, time or a token was missing.',
  },
  {
    name: 'updates_dead_lettered',
    kind: 'counter',
    help: 'Updates that a webhook lost and that became dead letters.',
  },
  {
    name: 'dead_letters_replayed',
    kind: 'counter',
    help: 'Dead letters pushed again as new updates.',
  },
  {
    name: 'dead_letters_evicted',
    kind: 'counter',
    help: 'Dead letters removed because their queue had too many.',
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
    help: 'Times that a webhook without a connection could not open one because all allowed connections were open.',
  },
  {
    name: 'connections_refused',
    kind: 'counter',
    help: 'Client connections refused with 503, or closed before their first request, because there were too many.',
  },
  {
    name: 'updates_duplicate',
    kind: 'counter',
    help: 'Pushes that got the id of the update that their idempotency key had stored before.',
  },
  {
    name: 'event_loop_delay_max_us',
    kind: 'gauge',
    help: 'The longest event-loop delay of any worker in the last minute.',
    isWorst: true,
  },
  {
    name: 'event_loop_delay_p99_us',
    kind: 'gauge',
    help: 'The 99th percentile of the event-loop delay in the worst ten seconds of the last minute.',
    isWorst: true,
  },
  {
    name: 'body_bytes_held',
    kind: 'gauge',
    help: 'Memory of request bodies that are incomplete or wait for the worker of their bot, in bytes.',
  },
  {
    name: 'bodies_refused',
    kind: 'counter',
    help: 'Requests refused with 503 because request bodies took too much memory.',
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
    help: 'Waiting getUpdates calls that ended because a webhook was set.',
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
  {
    name: 'methods_not_served',
    kind: 'counter',
    help: 'Calls of methods that need an upstream server, which this server does not have.',
  },
  { name: 'updates_pending', kind: 'gauge', help: 'Updates that wait for their bot.' },
  {
    name: 'updates_oldest_age_seconds',
    kind: 'gauge',
    help: 'The age of the oldest update that waits for its bot, in seconds.',
    isWorst: true,
  },
  { name: 'bots_polling', kind: 'gauge', help: 'Bots without a webhook.' },
  { name: 'bots_healthy', kind: 'gauge', help: 'Bots whose webhook is healthy.' },
  { name: 'bots_degraded', kind: 'gauge', help: 'Bots of whose deliveries some fail.' },
  { name: 'bots_failing', kind: 'gauge', help: 'Bots whose deliveries fail.' },
  { name: 'bots_unpolled', kind: 'gauge', help: 'Bots without a webhook whom nobody polls.' },
  { name: 'bots_paused', kind: 'gauge', help: 'Bots with a webhook whose deliveries are paused.' },
  { name: 'updates_refused_bad_request', kind: 'counter', help: 'Pushes that got BAD_REQUEST.' },
  { name: 'updates_refused_bad_update', kind: 'counter', help: 'Pushes that got BAD_UPDATE.' },
  { name: 'updates_refused_unknown_bot', kind: 'counter', help: 'Pushes that got UNKNOWN_BOT.' },
  {
    name: 'updates_refused_bot_not_served',
    kind: 'counter',
    help: 'Pushes that got BOT_NOT_SERVED.',
  },
  {
    name: 'updates_refused_idempotency_mismatch',
    kind: 'counter',
    help: 'Pushes that got IDEMPOTENCY_MISMATCH.',
  },
  {
    name: 'updates_refused_update_too_large',
    kind: 'counter',
    help: 'Pushes that got UPDATE_TOO_LARGE.',
  },
  {
    name: 'updates_refused_too_many_keys',
    kind: 'counter',
    help: 'Pushes that got TOO_MANY_KEYS.',
  },
  {
    name: 'updates_refused_too_many_bodies',
    kind: 'counter',
    help: 'Pushes that got TOO_MANY_BODIES.',
  },
  {
    name: 'updates_refused_store_unavailable',
    kind: 'counter',
    help: 'Pushes that got STORE_UNAVAILABLE.',
  },
  {
    name: 'updates_refused_outcome_unknown',
    kind: 'counter',
    help: 'Pushes that got OUTCOME_UNKNOWN.',
  },
  { name: 'updates_refused_queue_full', kind: 'counter', help: 'Pushes that got QUEUE_FULL.' },
  { name: 'updates_refused_disk_low', kind: 'counter', help: 'Pushes that got DISK_LOW.' },
  {
    name: 'updates_refused_id_space_exhausted',
    kind: 'counter',
    help: 'Pushes that got ID_SPACE_EXHAUSTED.',
  },
  { name: 'updates_refused_internal', kind: 'counter', help: 'Pushes that got INTERNAL.' },
  { name: 'updates_refused_other', kind: 'counter', help: 'Pushes that got any other error.' },
  { name: 'operator_events', kind: 'counter', help: 'Events for the operator.' },
  {
    name: 'operator_events_lost',
    kind: 'counter',
    help: 'Events for the operator that were not recorded, because there were too many.',
  },
  {
    name: 'operator_events_delivered',
    kind: 'counter',
    help: 'Events that the endpoint of --events-url accepted with 2xx.',
  },
  {
    name: 'operator_events_failed',
    kind: 'counter',
    help: 'Attempts to deliver events to --events-url that did not end in 2xx.',
  },
  {
    name: 'operator_events_skipped',
    kind: 'counter',
    help: 'Events that were not delivered to --events-url, because it did not accept them in time.',
  },
  {
    name: 'updates_refused_unauthorized',
    kind: 'counter',
    help: 'Updates of streams that got UNAUTHORIZED because the key of the stream was revoked or had expired.',
  },
  {
    name: 'updates_refused_key_lacks_bot',
    kind: 'counter',
    help: 'Updates of streams that got KEY_LACKS_BOT.',
  },
  {
    name: 'requests_denied_unauthorized',
    kind: 'counter',
    help: 'Requests on the private API that got UNAUTHORIZED.',
  },
  {
    name: 'requests_denied_key_lacks_scope',
    kind: 'counter',
    help: 'Requests on the private API that got KEY_LACKS_SCOPE.',
  },
  {
    name: 'requests_denied_key_lacks_bot',
    kind: 'counter',
    help: 'Requests on the private API that got KEY_LACKS_BOT.',
  },
  {
    name: 'requests_denied_key_over_limit',
    kind: 'counter',
    help: 'Requests on the private API that got KEY_OVER_LIMIT.',
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

/** The gauge of the bots with each health; `none` is for bots without a webhook, except those that nobody polls. /metrics shows them with a label. */
export const fleetHealthMetrics = {
  none: 'bots_polling',
  healthy: 'bots_healthy',
  degraded: 'bots_degraded',
  failing: 'bots_failing',
  paused: 'bots_paused',
  unpolled: 'bots_unpolled',
} as const satisfies Readonly<Record<string, MetricName>>

/**
 * Counts refused pushes by the code of their error; /metrics shows them as one metric with a label. `OTHER` is for codes
 * that no push should get, so that the sum is complete.
 */
export const refusalMetrics = {
  BAD_REQUEST: 'updates_refused_bad_request',
  BAD_UPDATE: 'updates_refused_bad_update',
  UNKNOWN_BOT: 'updates_refused_unknown_bot',
  BOT_NOT_SERVED: 'updates_refused_bot_not_served',
  IDEMPOTENCY_MISMATCH: 'updates_refused_idempotency_mismatch',
  UPDATE_TOO_LARGE: 'updates_refused_update_too_large',
  TOO_MANY_KEYS: 'updates_refused_too_many_keys',
  TOO_MANY_BODIES: 'updates_refused_too_many_bodies',
  STORE_UNAVAILABLE: 'updates_refused_store_unavailable',
  OUTCOME_UNKNOWN: 'updates_refused_outcome_unknown',
  QUEUE_FULL: 'updates_refused_queue_full',
  DISK_LOW: 'updates_refused_disk_low',
  ID_SPACE_EXHAUSTED: 'updates_refused_id_space_exhausted',
  INTERNAL: 'updates_refused_internal',
  UNAUTHORIZED: 'updates_refused_unauthorized',
  KEY_LACKS_BOT: 'updates_refused_key_lacks_bot',
  OTHER: 'updates_refused_other',
} as const satisfies Readonly<Partial<Record<ErrorCode | 'OTHER', MetricName>>>

/** Counts requests on the private API that their key does not allow; /metrics shows them as one metric with a label. */
export const deniedMetrics = {
  UNAUTHORIZED: 'requests_denied_unauthorized',
  KEY_LACKS_SCOPE: 'requests_denied_key_lacks_scope',
  KEY_LACKS_BOT: 'requests_denied_key_lacks_bot',
  KEY_OVER_LIMIT: 'requests_denied_key_over_limit',
} as const satisfies Readonly<Partial<Record<ErrorCode, MetricName>>>

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
