/**
 * The JSON that is stored of a call that changed something (`c` record), in shard 0 only. It has no payload, no token and no
 * secret. A field that is undefined is left out. The names are stored: do not rename.
 *
 * The id of a call is when it was answered and a random part, so that a call that is stored again is stored once:
 *
 *     019ab8f2c1d4 5e0f9a31      time in milliseconds (6 bytes), random (4 bytes), as 20 hexadecimal digits
 */

/** What is recorded of a call. */
export interface AuditRecord {
  /** Wall time in milliseconds. */
  readonly timeMs: number
  /** Who made it; absent for the admin key. */
  readonly key?: { readonly id: string; readonly name: string } | undefined
  /** The id of the call in the table of operations, such as `removeBot`. */
  readonly operation: string
  /** The verb and the path. */
  readonly call: string
  readonly botId?: number | undefined
  /** The username that the bot had. Absent if it was not known, and in the records of earlier versions. */
  readonly username?: string | undefined
  /** The bots of a part of a call that is about many. Absent in the records of earlier versions. */
  readonly botIds?: readonly number[] | undefined
  /** Whether it was about the /test/ queue of the bot. */
  readonly isTest?: boolean | undefined
  /** The access key or signing key that it was about. */
  readonly onKey?: string | undefined
  /** The settings that it changed; absent if it changed none, and in the records of earlier versions. */
  readonly changes?: readonly AuditChange[] | undefined
  /** `ok`, or the code of the error. */
  readonly result: string
  readonly requestId: string
}

/** A setting that a call changed. A change of a secret, or of what is too long, has no values. */
export interface AuditChange {
  /** As the API names it. */
  readonly field: string
  /** The value before; null: it was not set. */
  readonly from?: string | null
  readonly to?: string | null
}

/** A call as it was stored. */
export interface RecordedCall {
  /** 20 hexadecimal digits. */
  readonly id: string
  readonly record: AuditRecord
}

const timeDigits = 12
const randomDigits = 8

/** Returns the lowest id of a call of this time. */
export function firstAuditId(timeMs: number): string {
  return auditId(timeMs, '0'.repeat(randomDigits))
}

/**
 * Returns the id of a call.
 *
 * @param random - 8 hexadecimal digits
 */
export function auditId(timeMs: number, random: string): string {
  const time = Math.min(Math.max(Math.floor(timeMs), 0), 2 ** (4 * timeDigits) - 1)
  return time.toString(16).padStart(timeDigits, '0') + random
}
