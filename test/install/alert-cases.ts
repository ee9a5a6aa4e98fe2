/**
 * For each alert rule, series that make it fire and series that are as near as possible and do not. The values are in the
 * notation of promtool: a sample each minute, `0+5x60` is 0, 5, 10 and so on, 60 times.
 */

export interface AlertCase {
  readonly fires: Readonly<Record<string, string>>
  readonly isQuiet: Readonly<Record<string, string>>
}

/** Each rule is evaluated at the end of this time. */
export const evaluatedAfterMinutes = 180

const forever = (value: number): string => `${value}+0x${evaluatedAfterMinutes}`
const perMinute = (value: number): string => `0+${value}x${evaluatedAfterMinutes}`

const refused = (code: string): string => `postbote_updates_refused_total{code="${code}"}`
const bots = (health: string): string => `postbote_bots{health="${health}"}`

export const alertCases: Readonly<Record<string, AlertCase>> = {
  PostboteDown: {
    fires: { 'up{job="postbote"}': forever(0) },
    isQuiet: { 'up{job="postbote"}': forever(1), 'up{job="other"}': forever(0) },
  },
  PostboteShardPoisoned: gauge('postbote_shards_poisoned', 1, 0),
  PostboteShardBroken: gauge('postbote_shards_broken', 1, 0),
  PostboteStoreFailures: counter('postbote_store_failures_total'),
  PostboteDiskLow: counter(refused('DISK_LOW'), refused('QUEUE_FULL')),
  PostboteDiskFills: {
    // In 180 minutes from 20 GB to 2 GB, and to 11 GB.
    fires: { postbote_disk_free_bytes: `20000000000-100000000x${evaluatedAfterMinutes}` },
    isQuiet: { postbote_disk_free_bytes: `20000000000-50000000x${evaluatedAfterMinutes}` },
  },
  PostboteRelaysPaused: gauge('postbote_relays_paused', 1, 0),
  PostboteRelayUpdatesRefused: counter('postbote_relay_updates_refused_total'),
  PostboteAuditLost: counter('postbote_audit_lost_total'),
  PostboteBotsUnpolled: {
    fires: { [bots('unpolled')]: forever(12), [bots('none')]: forever(100) },
    isQuiet: { [bots('unpolled')]: forever(12), [bots('none')]: forever(121) },
  },
  PostboteWorkersRestart: {
    fires: { postbote_workers_restarted_total: '0+0x150 1+1x30' },
    isQuiet: { postbote_workers_restarted_total: '0+0x150 1+0x30' },
  },
  PostboteQueueFull: counter(refused('QUEUE_FULL'), refused('DISK_LOW')),
  PostbotePushesRefused: {
    fires: { [refused('BAD_UPDATE')]: perMinute(20), postbote_updates_pushed_total: perMinute(80) },
    isQuiet: {
      [refused('BAD_UPDATE')]: perMinute(20),
      postbote_updates_pushed_total: perMinute(980),
    },
  },
  PostboteUpdatesOld: gauge('postbote_updates_oldest_age_seconds', 3_700, 3_500),
  PostboteDeliveriesLate: {
    fires: latencies('delivery', { 60: 50, 300: 100 }, ',mode="webhook"'),
    isQuiet: latencies('delivery', { 30: 100, 60: 100 }, ',mode="webhook"'),
  },
  PostboteSyncsSlow: {
    fires: latencies('sync', { 0.5: 50, 1: 100 }),
    isQuiet: latencies('sync', { 0.25: 50, 0.5: 100 }),
  },
  PostboteNodeGone: {
    fires: { postbote_nodes: '3+0x170 2+0x10', postbote_nodes_lost: '0+0x170 1+0x10' },
    // The same after a planned drain.
    isQuiet: { postbote_nodes: '3+0x170 2+0x10', postbote_nodes_lost: forever(0) },
  },
  PostboteKeysEnd: gauge('postbote_access_keys_ending', 1, 0),
  PostboteCertificateEnds: gauge('postbote_certificates_ending', 1, 0),
  PostbotePendingGrows: {
    fires: { postbote_updates_pending: `100001+10x${evaluatedAfterMinutes}` },
    isQuiet: { postbote_updates_pending: forever(200_000) },
  },
  PostboteWebhooksFailing: {
    fires: {
      [bots('failing')]: forever(30),
      [bots('healthy')]: forever(70),
      [bots('none')]: forever(900),
      [bots('unpolled')]: forever(900),
    },
    isQuiet: {
      [bots('failing')]: forever(30),
      [bots('healthy')]: forever(170),
      [bots('none')]: forever(0),
    },
  },
  PostboteDeadLetters: {
    fires: {
      postbote_updates_dead_lettered_total: perMinute(10),
      postbote_updates_delivered_total: perMinute(900),
    },
    isQuiet: {
      postbote_updates_dead_lettered_total: perMinute(10),
      postbote_updates_delivered_total: perMinute(1_100),
    },
  },
  PostboteDeadLettersLost: {
    fires: {
      postbote_dead_letters_evicted_total: forever(3),
      postbote_dead_letters_expired_total: perMinute(1),
    },
    isQuiet: {
      postbote_dead_letters_evicted_total: forever(3),
      postbote_dead_letters_expired_total: forever(3),
    },
  },
  PostboteEventLoopDelay: gauge('postbote_event_loop_delay_p99_seconds', 0.15, 0.09),
  PostboteConnectionsRefused: counter('postbote_connections_refused_total'),
  PostboteBodiesRefused: counter('postbote_bodies_refused_total'),
  PostboteEventsNotDelivered: {
    fires: {
      postbote_operator_events_skipped_total: perMinute(1),
      postbote_operator_events_lost_total: forever(0),
    },
    isQuiet: {
      postbote_operator_events_skipped_total: forever(7),
      postbote_operator_events_lost_total: forever(0),
    },
  },
}

function gauge(name: string, fires: number, isQuiet: number): AlertCase {
  return { fires: { [name]: forever(fires) }, isQuiet: { [name]: forever(isQuiet) } }
}

/** It fires if the counter rises, and not if it stays, though another one rises. */
function counter(name: string, other = 'postbote_updates_pushed_total'): AlertCase {
  return {
    fires: { [name]: perMinute(1) },
    isQuiet: { [name]: forever(5), [other]: perMinute(1) },
  }
}

/** Buckets by their bounds in seconds, each with what it counts in a minute, and the last one without a bound. */
function latencies(
  name: string,
  counts: Readonly<Record<number, number>>,
  labels = '',
): Readonly<Record<string, string>> {
  const values = Object.entries(counts)
  const bounds = [...values, ['+Inf', Math.max(...Object.values(counts))] as const]
  return Object.fromEntries(
    bounds.map(([le, count]) => [
      `postbote_${name}_seconds_bucket{le="${le}"${labels}}`,
      perMinute(count),
    ]),
  )
}
