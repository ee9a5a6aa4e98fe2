/**
 * How a queue's settings hold `allowed_updates`. A bot that names none gets the default set of the version that runs, so
 * nothing is stored for it: a type that a later version adds to the default set reaches this bot, too.
 */
import type { AllowedTypes } from '../queue/allowed-updates.ts'
import type { QueueSettings } from '../shard/records/bot-record.ts'

/** Earlier versions stored their default set where a bot named none: the types 0 to 21 without five. Do not change. */
export const storedDefaultTypes = 0x3_f7ff

/** The settings with other allowed types. */
export function withAllowedTypes(settings: QueueSettings, types: AllowedTypes): QueueSettings {
  const { allowedTypes: _before, ...others } = settings
  return types === 'default' ? others : { ...others, allowedTypes: types }
}

/** The settings as a shard has them, in which the default set of an earlier version counts as none. */
export function settingsAsStored(settings: QueueSettings): QueueSettings {
  return settings.allowedTypes === storedDefaultTypes
    ? withAllowedTypes(settings, 'default')
    : settings
}
