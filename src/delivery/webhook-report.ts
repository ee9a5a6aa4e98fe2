/** What the operator sees of the deliveries of a queue. */
import type { WebhookRecord } from '../shard/records/bot-record.ts'
import { recordOf } from '../kit/record-of.ts'
import { type OutcomeCounts, outcomes } from './attempts/attempt-log.ts'
import {
  type HealthFacts,
  healthOf,
  healthWord,
  type HealthWordFacts,
  type Waiting,
} from './attempts/health.ts'
import type { Health } from '../kit/states.ts'

/** What getWebhookInfo shows. */
export interface WebhookInfo {
  readonly ipAddress: string | undefined
  readonly lastErrorDateS: number | undefined
  readonly lastErrorMessage: string | undefined
  /** The value in effect; undefined without a webhook. */
  readonly maxConnections: number | undefined
}

/** The state of the deliveries of a queue. */
export interface WebhookReport extends Waiting {
  /** Undefined for a queue without a webhook that is polled, or has nothing to take. */
  readonly health: Health | undefined
  /** One sentence for the operator. */
  readonly healthReason: string
  /** The value in effect; undefined without a webhook. */
  readonly maxConnections: number | undefined
  /** Counted since this process started. */
  readonly deliveries: OutcomeCounts
}

/** The part of a report that lists of bots show. */
export type WebhookStatus = Pick<WebhookReport, 'health' | 'nextAttemptMs'>

export interface WebhookFacts extends Omit<HealthFacts, 'hasWebhook' | 'waiting'> {
  readonly webhook: WebhookRecord | undefined
  /** Undefined without a dispatcher. */
  readonly waiting: Waiting | undefined
}

export function webhookReport(facts: WebhookFacts): WebhookReport {
  const { webhook, log, waiting = idle } = facts
  const { health, reason } = healthOf({ ...facts, waiting, hasWebhook: webhook !== undefined })
  const deliveries = log?.counts() ?? noDeliveries
  const maxConnections = webhook?.maxConnections
  return { ...waiting, health, healthReason: reason, maxConnections, deliveries }
}

/** What is known of a queue that may not be in memory. */
export interface StatusFacts extends HealthWordFacts {
  readonly waiting: Waiting
}

/** Returns the word for what a queue does itself, whatever else is wrong with its bot. */
export function ownHealth(facts: StatusFacts): Health | undefined {
  return webhookStatus({ ...facts, troubles: [] }).health
}

/** Returns the sentence, as far as it is known without the queue in memory. */
export function reasonOf(facts: StatusFacts, oldestAgeS: number | undefined): string {
  return healthOf({ ...facts, oldestAgeS, limitPerSecond: undefined, notes: [] }).reason
}

/** Returns what `webhookReport` says, for a queue that may not be in memory. */
export function webhookStatus(facts: StatusFacts): WebhookStatus {
  return { health: healthWord(facts), nextAttemptMs: facts.waiting.nextAttemptMs }
}

/** What a queue without a dispatcher waits for. */
export const idle: Waiting = {
  parkedKeys: 0,
  nextAttemptMs: undefined,
  unansweredMs: undefined,
  endpointPerSecond: undefined,
}
const noDeliveries = recordOf(outcomes, () => 0)
