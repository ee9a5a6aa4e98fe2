/** The port from a queue's webhook settings (webhook-control.ts) to the webhook layer, which app/webhook-factory.ts fills. */
import type { Clock } from '../clock.ts'
import type { Lease } from '../lease.ts'
import type { StoredSigningKey, WebhookRecord } from '../shard/bot-record.ts'
import type { QueueId } from '../shard/keys.ts'
import type { AttemptLog } from '../webhook/attempt-log.ts'
import type { AttemptLogs } from '../webhook/attempt-logs.ts'
import type { DeliveryLimit } from '../webhook/delivery-pace.ts'
import type { DispatcherOptions } from '../webhook/dispatcher-options.ts'
import type { Endpoint } from '../webhook/endpoint.ts'
import type { Waiting } from '../webhook/health.ts'
import type { AddressBook, KnownAddresses } from '../webhook/known-addresses.ts'
import type { RetryNow } from '../webhook/state.ts'
import type { Verified } from '../webhook/verify.ts'

/** What the webhook of a queue needs from the webhook layer. Created once per worker. */
export interface WebhookServices {
  /** Throws INVALID_WEBHOOK_URL or BAD_WEBHOOK. */
  parseEndpoint(url: string): Endpoint
  verify(request: {
    readonly endpoint: Endpoint
    readonly webhook: WebhookRecord
    readonly signal: AbortSignal
  }): Promise<Verified>
  createDispatcher(request: DispatcherRequest): WebhookDispatcher
  /** `--max-webhook-connections`: a larger stored value counts as this one. */
  readonly connectionsMax: number
  readonly attempts: AttemptLogs
  readonly addresses: AddressBook
}

/** The part of webhook/dispatcher.ts that the webhook of a queue uses. */
export interface WebhookDispatcher {
  start(afterId: number): void
  wake(): void
  close(): Promise<void>
  drain(deadlineMs: number): Promise<void>
  pauseDeliveries(deadlineMs: number): Promise<void>
  info(): DispatcherInfo
  pause(): void
  resume(): void
  retry(which: RetryNow): number
  waiting(): Waiting
}

export interface DispatcherInfo {
  readonly ipAddress?: string | undefined
  /** Monotonic time. */
  readonly lastSuccessMs?: number | undefined
}

export interface DispatcherRequest
  extends Pick<DispatcherOptions, 'source' | 'onGone' | 'onGoneClock'> {
  /** That of the shard. */
  readonly clock: Clock
  readonly queueId: QueueId
  readonly webhook: WebhookRecord
  /** Deliveries begin while this is valid. */
  readonly lease: Lease
  /** The keys that deliveries are signed with now. */
  signingKeys(): readonly StoredSigningKey[] | undefined
  readonly limit: DeliveryLimit
  readonly addresses: KnownAddresses
  /** Records the attempts. */
  readonly attempts: AttemptLog
  onHealth(): void
}
