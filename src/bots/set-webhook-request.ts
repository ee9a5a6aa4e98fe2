/** What setWebhook asks for, as the parties that read and do it share it. */
import type { AllowedTypes } from '../queue/allowed-updates.ts'
import type { WebhookRecord } from '../shard/records/bot-record.ts'

/** A setWebhook call whose syntax was checked. */
export interface SetWebhookRequest {
  readonly webhook: WebhookRecord
  readonly allowedTypes: AllowedTypes
  readonly dropsPending: boolean
}
