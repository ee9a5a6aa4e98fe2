/** A change of the settings of a queue, as its parts ask for it. */
import type { QueueSettings } from '../shard/records/bot-record.ts'
import type { Operation } from '../shard/operations.ts'

/** A change of settings, with operations to commit in the same group. */
export interface ChangedSettings {
  readonly settings: QueueSettings
  readonly alongside?: readonly Operation[]
}

export type SettingsChange = (settings: QueueSettings) => ChangedSettings | Promise<ChangedSettings>
