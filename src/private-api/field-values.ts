/** Values of the fields that several responses have. Their schemas are in api/words.ts. */
import assert from 'node:assert/strict'
import type { Static } from 'typebox'
import type { BotSummary } from '../bots/bot.ts'
import type * as is from '../api/words.ts'
import type { Unchanging } from '../api/operation.ts'
import type { Attempt } from '../delivery/attempts/attempt.ts'
import { shownHeadersIn } from '../delivery/attempts/response-headers.ts'

type AttemptJson = Unchanging<Static<ReturnType<typeof is.attempt>>>

export const fieldValues = {
  botNames: ({ botId, firstName, username, createdAtMs }: BotSummary) => ({
    bot_id: botId,
    first_name: firstName,
    username,
    created_at: Math.floor(createdAtMs / 1_000),
  }),
  preciseTime: (ms: number): number => Math.round(ms) / 1_000,
  timeOrNull: (ms: number | undefined): number | null =>
    ms === undefined ? null : fieldValues.preciseTime(ms),
  /** Absent without a trace. */
  trace: ({ traceparent }: { readonly traceparent?: string | undefined }) =>
    traceparent === undefined ? {} : { traceparent },
  /** An attempt to deliver an update. */
  attempt: (attempt: Attempt): AttemptJson => ({
    time: fieldValues.preciseTime(attempt.atMs),
    update_id: attempt.updateId === 0 ? null : attempt.updateId,
    address: attempt.address ?? null,
    status: attempt.status === 0 ? null : attempt.status,
    duration_ms: Math.round(attempt.durationMs),
    error: attempt.error ?? null,
    response_body: attempt.responseBody ?? null,
    response_headers:
      attempt.responseHeaders === undefined ? null : shownHeadersIn(attempt.responseHeaders),
    next_retry: Number.isNaN(attempt.nextRetryMs)
      ? null
      : fieldValues.preciseTime(attempt.nextRetryMs),
    ...fieldValues.trace(attempt),
  }),
  /** A list that an answer has only if it is not empty. */
  someOf: <Item>(list: readonly Item[]): readonly Item[] | undefined =>
    list.length > 0 ? list : undefined,
  /** The shards that nobody has answered for. */
  missingShards(shards: number, found: readonly number[]): readonly number[] | undefined {
    const known = new Set(found)
    const all = Array.from({ length: shards }, (_, shard) => shard)
    return fieldValues.someOf(all.filter((shard) => !known.has(shard)))
  },
} as const

/** Returns a JSON object with one more field, `update`, which is byte for byte as it was pushed. */
export function jsonWithUpdate(fields: object, text: Buffer): Buffer {
  const head = JSON.stringify(fields).slice(0, -1)
  assert(head !== '{', 'an update has fields before it')
  return Buffer.concat([Buffer.from(`${head},"update":{`), text, Buffer.from('}}')])
}
