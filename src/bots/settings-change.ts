/**
 * How the settings of a queue change: what setWebhook asks for, and the settings with it.
 *
 * A bot that names no `allowed_updates` gets the default set of the version that runs, so nothing is stored for it: a type that a
 * later version adds to the default set reaches this bot, too.
 */
import type { AllowedTypes } from '../queue/allowed-updates.ts'
import type { Operation } from '../shard/operations.ts'
import type { QueueSettings, WebhookRecord } from '../shard/records/bot-record.ts'

/** A change of settings, with operations to commit in the same group. */
export interface ChangedSettings {
  readonly settings: QueueSettings
  readonly alongside?: readonly Operation[]
}

export type SettingsChange = (settings: QueueSettings) => ChangedSettings | Promise<ChangedSettings>

/** A setWebhook call whose syntax was checked. */
export interface SetWebhookRequest {
  readonly webhook: WebhookRecord
  readonly allowedTypes: AllowedTypes
  readonly dropsPending: boolean
}

/** The settings with other allowed types. */
export function withAllowedTypes(settings: QueueSettings, types: AllowedTypes): QueueSettings {
  const { allowedTypes: _before, ...others } = settings
  return types === 'default' ? others : { ...others, allowedTypes: types }
}

/** Earlier versions stored their default set where a bot named none: the types 0 to 21 without five. Do not change. */
export const storedDefaultTypes = 0x3_f7ff

/** The settings as a shard has them, in which the default set of an earlier version counts as none. */
export function settingsAsStored(settings: QueueSettings): QueueSettings {
  return settings.allowedTypes === storedDefaultTypes
    ? withAllowedTypes(settings, 'default')
    : settings
}
