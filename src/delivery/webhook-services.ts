/** The port from a queue's webhook settings (webhook-control.ts) to the webhook layer, which worker/webhook-factory.ts fills. */
import type { BotSettings, StoredSigningKey, WebhookRecord } from '../shard/records/bot-record.ts'
import type { QueueId } from '../shard/records/record-keys.ts'
import type { AttemptLog } from './attempts/attempt-log.ts'
import type { AttemptLogs } from './attempts/attempt-logs.ts'
import type { DeliveryLimit } from './pace/delivery-pace.ts'
import type { Dispatcher, DispatcherOptions } from './dispatcher.ts'
import type { Endpoint } from './endpoint/endpoint.ts'
import type { EndpointCheck } from './endpoint-check.ts'
import type { AddressBook, KnownAddresses } from './endpoint/known-addresses.ts'
import type { ShownRequest } from './endpoint/request-headers.ts'
import type { Verified } from './endpoint/verify.ts'

/** What the webhook of a queue needs from the webhook layer. Created once per worker. */
export interface WebhookServices {
  /** Throws INVALID_WEBHOOK_URL or BAD_WEBHOOK. */
  parseEndpoint(url: string): Endpoint
  verify(request: {
    readonly endpoint: Endpoint
    readonly webhook: WebhookRecord
    readonly signal: AbortSignal
  }): Promise<Verified>
  /** Checks the endpoint of a webhook that is set. Rejects with TOO_MANY_REQUESTS, or with the reason of the signal. */
  check(
    request: WebhookOfQueue & {
      /** The addresses that deliveries use. */
      readonly known: KnownAddresses
      readonly signal: AbortSignal
    },
  ): Promise<EndpointCheck>
  /** Returns the requests of deliveries as operators see them. */
  requestOf(webhook: WebhookOfQueue): ShownRequest
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
  | 'change'
  | 'pauseDeliveries'
  | 'info'
  | 'pause'
  | 'resume'
  | 'retry'
  | 'lookUpAgain'
  | 'parkedKeys'
  | 'waiting'
  | 'waitsFor'
>

/** A webhook that is set. */
export interface WebhookOfQueue {
  readonly queueId: QueueId
  readonly webhook: WebhookRecord
  /** What the operator has set for the bot. */
  readonly ofBot: BotSettings
  /** The keys that deliveries are signed with now. */
  signingKeys(): readonly StoredSigningKey[] | undefined
}

/** What the webhook decides about its dispatcher. The clock is that of the shard. */
export interface DispatcherRequest
  extends WebhookOfQueue,
    Pick<DispatcherOptions, 'clock' | 'source' | 'addresses' | 'lease' | 'onGone' | 'onGoneClock'> {
  readonly limit: DeliveryLimit
  readonly attempts: AttemptLog
  onHealth(): void
  onAttemptFailed(): void
}
