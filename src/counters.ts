/** Where the layers count what they do. In a worker it is the worker's slot of the shared memory. */

/** Only ever grow. Append only: the order is the layout of the shared memory. */
export const counterNames = [
  'updates_pushed',
  'updates_filtered',
  'updates_refused',
  'updates_confirmed',
  'updates_delivered',
  'updates_expired',
  'updates_dropped',
  'polls_answered',
  'polls_refused',
  'webhook_attempts',
  'webhook_failures',
  'requests_bot',
  'requests_private',
  'requests_forwarded',
  'connections_handed_off',
  'store_groups',
  'store_operations',
  'store_failures',
] as const

/** Rise and fall. */
export const gaugeNames = [
  'bots_loaded',
  'polls_waiting',
  'webhooks_active',
  'webhook_connections_active',
  'webhook_connections_pending',
  'window_bytes',
  'connections_open',
] as const

export type CounterName = (typeof counterNames)[number]
export type GaugeName = (typeof gaugeNames)[number]

export interface Counters {
  add(name: CounterName | GaugeName, amount: number): void
}

export const noCounters: Counters = { add: () => undefined }
