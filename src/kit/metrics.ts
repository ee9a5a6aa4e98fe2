/**
 * All metrics that workers count in shared memory. To add one, append a row at the end of `rows` and count it with
 * `Counters` (surroundings.ts): /metrics and its HELP line follow. Each one is used somewhere. The position of a metric in `rows`
 * is its cell in a slot (metric-slot.ts), and the old and the new worker share the file during a reload: append only,
 * do not reorder, at most `metricsMax` entries.
 *
 * A counter only grows and outlives its worker. A gauge describes the present state of one process and ends with it.
 */
import type { ErrorCode } from './errors.ts'
import { recordOf } from './record-of.ts'

/** A metric with the HELP line of /metrics, which a counter has alone. */
type Row = string | Gauge

interface Gauge {
  readonly gauge: string
  /** /metrics shows the highest value of all workers. Other metrics are summed. */
  readonly isWorst?: boolean
}

/**
 * The codes of refused pushes. A further one begins a list of its own, which is spread at the end of `rows`, because these have
 * their cells.
 */
const refusals = countersOf('updates_refused', [
  'BAD_REQUEST',
  'BAD_UPDATE',
  'UNKNOWN_BOT',
  'BOT_NOT_SERVED',
  'IDEMPOTENCY_MISMATCH',
  'UPDATE_TOO_LARGE',
  'TOO_MANY_KEYS',
  'TOO_MANY_BODIES',
  'STORE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
  'QUEUE_FULL',
  'DISK_LOW',
  'ID_SPACE_EXHAUSTED',
  'INTERNAL',
])
/** Only updates of streams get these, when the key of the stream was revoked, has expired or has lost the bot. */
const streamRefusals = countersOf('updates_refused', ['UNAUTHORIZED', 'KEY_LACKS_BOT'])

/** Counts requests on the private API that their key does not allow. */
const deniedByKey = countersOf('requests_denied', [
  'UNAUTHORIZED',
  'KEY_LACKS_SCOPE',
  'KEY_LACKS_BOT',
  'KEY_OVER_LIMIT',
])
/** Counts requests that their link to the owner's page does not allow: a list of its own, as further refusals have. */
const deniedByLink = countersOf('requests_denied', ['BAD_LINK', 'LINK_LACKS_RIGHT'])
/** Both lists, which /metrics shows as one metric with a label. */
export const deniedMetrics = { ...deniedByKey, ...deniedByLink }

const rows = {
  updates_pushed: 'Updates stored.',
  updates_filtered: 'Pushed updates that were not stored because the bot does not want their type.',
  updates_refused: 'Pushes that got an error.',
  updates_confirmed: 'Updates that the offset of a getUpdates call confirmed.',
  updates_delivered: 'Updates that a webhook accepted with 2xx.',
  updates_expired: 'Updates removed because they expired.',
  updates_dropped: 'Updates dropped at the request of their bot.',
  polls_answered: 'getUpdates calls that got updates or an empty list.',
  polls_refused: 'getUpdates calls that got 409.',
  webhook_attempts:
    'Attempts to deliver to webhooks: requests, and connections that could not be opened.',
  webhook_failures: 'Attempts to deliver to webhooks that did not end in 2xx.',
  requests_bot: 'Requests on the bot API.',
  requests_forwarded: 'Requests forwarded to the worker that owns their bot.',
  store_groups: 'Synced batches written to the shards.',
  store_operations: 'Operations in the synced batches.',
  store_failures: 'Writes and syncs that failed.',
  bots_loaded: { gauge: 'Bots held in memory.' },
  polls_waiting: { gauge: 'getUpdates calls that wait for updates.' },
  webhook_connections_active: { gauge: 'Open connections to webhooks.' },
  shards_poisoned: { gauge: 'Shards that refuse all changes after a failed write.' },
  webhook_rejected: 'Attempts to which a webhook responded, but not with 2xx.',
  webhook_timed_out: 'Attempts that timed out.',
  webhook_connection_failed: 'Attempts whose connection failed or broke.',
  webhook_tls_failed: 'Attempts whose TLS handshake or certificate failed.',
  webhook_refused_for_good: 'Attempts in which a webhook refused the update for good.',
  webhook_expired: 'Updates that expired before a webhook took them.',
  requests_proxied: 'Calls forwarded to the upstream server.',
  upstream_failures: 'Calls to which the upstream server did not respond.',
  webhook_replies_sent:
    'Methods from responses of webhooks that the upstream server accepted with 2xx.',
  webhook_replies_failed:
    'Methods from responses of webhooks that the upstream server did not accept.',
  webhook_replies_dropped:
    'Methods from responses of webhooks that were not sent, because memory, time or a token was missing.',
  updates_dead_lettered: 'Updates that a webhook lost and that became dead letters.',
  dead_letters_replayed: 'Dead letters pushed again as new updates.',
  dead_letters_evicted: 'Dead letters removed because their queue had too many.',
  dead_letters_expired: 'Dead letters removed after their seven days.',
  dead_letters_dropped: 'Dead letters dropped by the operator, or with their bot.',
  webhooks_turned_away:
    'Times that a webhook without a connection could not open one because all allowed connections were open.',
  connections_refused:
    'Client connections refused with 503, or closed before their first request, because there were too many.',
  updates_duplicate:
    'Pushes that got the id of the update that their idempotency key had stored before.',
  event_loop_delay_max_us: {
    gauge: 'The longest event-loop delay of any worker in the last minute.',
    isWorst: true,
  },
  event_loop_delay_p99_us: {
    gauge:
      'The 99th percentile of the event-loop delay in the worst ten seconds of the last minute.',
    isWorst: true,
  },
  body_bytes_held: {
    gauge:
      'Memory of request bodies that are incomplete or wait for the worker of their bot, in bytes.',
  },
  bodies_refused: 'Requests refused with 503 because request bodies took too much memory.',
  shards_broken: { gauge: 'Shards that are set aside because their files are damaged.' },
  polls_refused_webhook_active: 'getUpdates calls refused because a webhook is set.',
  polls_refused_webhook_set: 'Waiting getUpdates calls that ended because a webhook was set.',
  polls_refused_newer_poll: 'getUpdates calls that a later call of the same bot ended.',
  polls_refused_higher_offset:
    'getUpdates calls refused because a call with a higher offset waits.',
  methods_not_served:
    'Calls of methods that need an upstream server, which this server does not have.',
  updates_pending: { gauge: 'Updates that wait for their bot.' },
  updates_oldest_age_seconds: {
    gauge: 'The age of the oldest update that waits for its bot, in seconds.',
    isWorst: true,
  },
  bots_polling: { gauge: 'Bots without a webhook.' },
  bots_healthy: { gauge: 'Bots whose webhook is healthy.' },
  bots_degraded: { gauge: 'Bots of whose deliveries some fail.' },
  bots_failing: { gauge: 'Bots whose deliveries fail.' },
  bots_unpolled: { gauge: 'Bots without a webhook whom nobody polls.' },
  bots_paused: { gauge: 'Bots with a webhook whose deliveries are paused.' },
  ...ofLabel(refusals),
  updates_refused_other: 'Pushes that got any other error.',
  operator_events: 'Events for the operator.',
  operator_events_lost:
    'Events for the operator that were not recorded, because there were too many.',
  operator_events_delivered: 'Events that the endpoint of --events-url accepted with 2xx.',
  operator_events_failed: 'Attempts to deliver events to --events-url that did not end in 2xx.',
  operator_events_skipped:
    'Events that were not delivered to --events-url, because it did not accept them in time.',
  ...ofLabel(streamRefusals),
  ...ofLabel(deniedByKey),
  audit_lost: 'Calls that changed something and could not be recorded.',
  attempt_events_wanted: { gauge: 'Workers that serve readers of the events of attempts.' },
  nodes: {
    gauge: 'Nodes of the cluster, as this one knows them; 0 on one machine.',
    isWorst: true,
  },
  access_keys_ending: {
    gauge: 'Keys of the private API that expire within 14 days.',
    isWorst: true,
  },
  certificates_ending: {
    gauge: 'Certificates of this server that expire within 14 days.',
    isWorst: true,
  },
  trace_spans_exported: 'Spans that the OTLP endpoint accepted.',
  trace_spans_dropped:
    'Spans that were not sent to the OTLP endpoint, because it did not accept them in time.',
  relays_polling: { gauge: 'Relays that take updates from their origins.' },
  relays_paused: {
    gauge: 'Relays whose origin does not answer, or whose updates cannot be stored.',
  },
  updates_relayed: 'Updates that relays stored.',
  relay_updates_refused: 'Updates that relays skipped, because no queue can store them.',
  ...ofLabel(deniedByLink),
  polls_taken_over:
    'Waiting getUpdates calls that got an empty list, because a later call of the same bot took over.',
  bot_certificate_left_seconds: {
    gauge:
      'Seconds for which the certificate of the bot API is valid; 0 after its end, or without one.',
    isWorst: true,
  },
  private_certificate_left_seconds: {
    gauge:
      'Seconds for which the certificate of the private listener is valid; 0 after its end, or without one.',
    isWorst: true,
  },
  tls_handshakes: 'Handshakes of TLS with clients that were completed.',
  tls_handshakes_failed: 'Handshakes of TLS with clients that failed or took too long.',
  workers_restarted:
    'Workers that were started again after they had ended by themselves or were killed.',
  disk_free_mib: {
    gauge:
      'The free space on the disk of the data directory, in bytes; 0 if a database has the updates.',
    isWorst: true,
  },
  dead_letters_kept: { gauge: 'Dead letters that are kept.' },
  bots_behind: {
    gauge: 'Bots whose oldest update waits longer and longer, or has waited for half an hour.',
  },
  nodes_lost: {
    gauge: 'Nodes that are gone without having been told to leave, and are not back.',
    isWorst: true,
  },
  file_bytes_verified:
    'Bytes of the files of open shards that were compared with their checksums in the background.',
  file_bytes_unverified: {
    gauge: 'Bytes of tables that are open and wait to be compared with their checksums.',
  },
  file_damages_found: 'Damaged places that the checks of open shards have found.',
} as const satisfies Readonly<Record<string, Row>>

export type MetricName = keyof typeof rows

export type GaugeName = {
  [Name in MetricName]: (typeof rows)[Name] extends Gauge ? Name : never
}[MetricName]

interface Metric {
  readonly name: MetricName
  readonly kind: 'counter' | 'gauge'
  readonly help: string
  readonly isWorst: boolean
}

/** Builds a record that has one value for each metric. */
export function forEachMetric<Value>(
  valueOf: (metric: Metric, index: number) => Value,
): Record<MetricName, Value> {
  return recordOf(names, (name, index) => valueOf(metricOf(name), index))
}

// The type of Object.keys does not keep the names.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const names = Object.keys(rows) as MetricName[]

export const metrics: readonly Metric[] = names.map(metricOf)

function metricOf(name: MetricName): Metric {
  const row: Row = rows[name]
  return typeof row === 'string'
    ? { name, kind: 'counter', help: row, isWorst: false }
    : { name, kind: 'gauge', help: row.gauge, isWorst: row.isWorst === true }
}

/**
 * The counter of each outcome of a delivery (delivery/attempts/attempt-log.ts). /metrics shows them as one metric with a label.
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

/** The counters that the summary and the history of a server show, by their names there. */
export const summaryMetrics = {
  pushed: 'updates_pushed',
  confirmed: 'updates_confirmed',
  delivered: 'updates_delivered',
  expired: 'updates_expired',
  refused: 'updates_refused',
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
  behind: 'bots_behind',
} as const satisfies Readonly<Record<string, MetricName>>

/**
 * Counts refused pushes by the code of their error; /metrics shows them as one metric with a label. `OTHER` is for codes
 * that no push should get, so that the sum is complete.
 */
export const refusalMetrics = {
  ...refusals,
  ...streamRefusals,
  OTHER: 'updates_refused_other',
} as const

/** The counters that a label tells apart, one for each code of an error. */
function countersOf<Prefix extends string, Code extends ErrorCode>(
  prefix: Prefix,
  codes: readonly Code[],
): Readonly<Record<Code, `${Prefix}_${Lowercase<Code>}`>> {
  // The type of toLowerCase does not keep the code.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return recordOf(codes, (code) => `${prefix}_${code.toLowerCase() as Lowercase<Code>}` as const)
}

/** The rows of these counters. Their HELP line is that of the metric with the label. */
function ofLabel<Name extends string>(
  counters: Readonly<Record<string, Name>>,
): Record<Name, string> {
  return recordOf(Object.values(counters), () => '')
}
