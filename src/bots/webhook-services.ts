/** The port from a queue's webhook settings (webhook-control.ts) to the webhook layer, which app/webhook-factory.ts fills. */
import type { BotSettings, StoredSigningKey, WebhookRecord } from '../shard/bot-record.ts'
import type { QueueId } from '../shard/record-keys.ts'
import type { AttemptLog } from '../webhook/attempt-log.ts'
import type { AttemptLogs } from '../webhook/attempt-logs.ts'
import type { DeliveryLimit } from '../webhook/delivery-pace.ts'
import type { Dispatcher, DispatcherOptions } from '../webhook/dispatcher.ts'
import type { Endpoint } from '../webhook/endpoint.ts'
import type { AddressBook } from '../webhook/known-addresses.ts'
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

/** The part of a dispatcher that the webhook of a queue uses. */
export type WebhookDispatcher = Pick<
  Dispatcher,
  | 'start'
  | 'wake'
  | 'close'
  | 'drain'
  | 'pauseDeliveries'
  | 'info'
  | 'pause'
  | 'resume'
  | 'retry'
  | 'waiting'
>

/** What the webhook decides about its dispatcher. The clock is that of the shard. */
export interface DispatcherRequest
  extends Pick<
    DispatcherOptions,
    'clock' | 'source' | 'addresses' | 'lease' | 'onGone' | 'onGoneClock'
  > {
  readonly queueId: QueueId
  readonly webhook: WebhookRecord
  /** What the operator has set for the bot. */
  readonly ofBot: BotSettings
  readonly limit: DeliveryLimit
  readonly attempts: AttemptLog
  /** The keys that deliveries are signed with now. */
  signingKeys(): readonly StoredSigningKey[] | undefined
  onHealth(): void
  onAttemptFailed(): void
}
