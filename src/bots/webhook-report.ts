/** What the operator sees of the deliveries of a queue. */
import type { WebhookRecord } from '../shard/bot-record.ts'
import { type AttemptLog, countsOf, type OutcomeCounts } from '../webhook/attempt-log.ts'
import { type Health, healthOf, healthWord, type Waiting } from '../webhook/health.ts'

/** The state of the deliveries of a queue. */
export interface WebhookReport extends Waiting {
  /** Undefined without a webhook. */
  readonly health: Health | undefined
  /** One sentence for the operator. */
  readonly healthReason: string | undefined
  /** The value in effect; undefined without a webhook. */
  readonly maxConnections: number | undefined
  /** Counted since this process started. */
  readonly deliveries: OutcomeCounts
}

/** The part of a report that lists of bots show. */
export type WebhookStatus = Pick<WebhookReport, 'health' | 'nextAttemptMs'>

export interface WebhookFacts {
  readonly webhook: WebhookRecord | undefined
  readonly log: AttemptLog | undefined
  /** Undefined without a dispatcher. */
  readonly waiting: Waiting | undefined
  readonly isPaused: boolean
  /** The operator's limit of deliveries per second; undefined without one. */
  readonly limitPerSecond: number | undefined
  readonly pendingCount: number
  readonly nowMs: number
}

export function webhookReport(facts: WebhookFacts): WebhookReport {
  const { webhook, log, waiting = idle } = facts
  const { health, reason } =
    webhook === undefined ? noHealth : healthOf({ ...facts, ...waiting, log })
  const deliveries = log?.counts() ?? noDeliveries
  const maxConnections = webhook?.maxConnections
  return { ...waiting, health, healthReason: reason, maxConnections, deliveries }
}

/** Returns what `webhookReport` says, for a queue that may not be in memory. */
export function webhookStatus(
  facts: Pick<WebhookFacts, 'log' | 'waiting' | 'isPaused' | 'nowMs'>,
): WebhookStatus {
  const { waiting = idle } = facts
  const health = healthWord({ ...facts, parkedKeys: waiting.parkedKeys })
  return { health, nextAttemptMs: waiting.nextAttemptMs }
}

const idle: Waiting = {
  parkedKeys: 0,
  nextAttemptMs: undefined,
  unansweredMs: undefined,
  endpointPerSecond: undefined,
}
const noHealth = { health: undefined, reason: undefined }
const noDeliveries = countsOf(() => 0)
