/** Values of the fields that several answers have. Their schemas are in operations/field-schemas.ts. */
import type { BotSummary } from '../../bots/bot-service.ts'

export const fieldValues = {
  botNames: ({ botId, firstName, username, createdAtMs }: BotSummary) => ({
    bot_id: botId,
    first_name: firstName,
    username,
    created_at: Math.floor(createdAtMs / 1_000),
  }),
  preciseTime: (ms: number): number => Math.round(ms) / 1_000,
  nextAttempt: (ms: number | undefined): number | null =>
    ms === undefined ? null : fieldValues.preciseTime(ms),
  /** The shards that nobody has answered for. Undefined if there are none: the answer has no such field then. */
  missingShards(shards: number, found: readonly number[]): readonly number[] | undefined {
    const known = new Set(found)
    const all = Array.from({ length: shards }, (_, shard) => shard)
    const missing = all.filter((shard) => !known.has(shard))
    return missing.length > 0 ? missing : undefined
  },
} as const
