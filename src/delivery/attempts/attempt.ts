/** An attempt to deliver, and what is stored of the last ones (shard/records/attempts-record.ts). Pure. */
import type { AttemptRow, AttemptsRecord } from '../../shard/records/attempts-record.ts'

/** One attempt. All fields except the texts are numbers, so that one object can be filled repeatedly. */
export interface Attempt {
  /** When the attempt ended. */
  atMs: number
  /** 0 for a connection whose update was taken over by another connection. */
  updateId: number
  /** The HTTP status; 0 without a response. */
  status: number
  durationMs: number
  /** The next retry; equal to `atMs` for an immediate retry, NaN without one. */
  nextRetryMs: number
  /** Undefined if there was no address to connect to. */
  address: string | undefined
  /** Undefined for a success. */
  error: string | undefined
  /** The beginning of what the endpoint answered to a failed attempt, without secrets; undefined if it is not kept. */
  responseBody?: string | undefined
  /** Headers of this answer (response-headers.ts), kept if the body is. */
  responseHeaders?: string | undefined
  /** The place in its trace that the endpoint got; undefined if the update has no trace. */
  traceparent?: string | undefined
}

/** An attempt as it is kept. */
export interface RecordedAttempt extends Attempt {
  /** Whether the endpoint has refused its update for good. */
  readonly isRefused: boolean
}

/** @param attempts - the oldest first */
export function attemptsRecord(attempts: readonly RecordedAttempt[]): AttemptsRecord {
  const places = new Map<string, number>()
  const placeOf = (text: string | undefined): number => {
    if (text === undefined) return none
    const place = places.get(text) ?? places.size
    places.set(text, place)
    return place
  }
  const rows = attempts.map((attempt): AttemptRow => {
    const { nextRetryMs } = attempt
    const row = [
      Math.round(attempt.atMs),
      attempt.updateId,
      attempt.status,
      Math.round(attempt.durationMs),
      Number.isNaN(nextRetryMs) ? 0 : Math.round(nextRetryMs),
      attempt.isRefused ? 1 : 0,
      placeOf(attempt.address),
      placeOf(attempt.error),
      placeOf(attempt.responseBody),
    ] as const
    const { responseHeaders: headers, traceparent } = attempt
    if (traceparent !== undefined) return [...row, placeOf(headers), placeOf(traceparent)]
    return headers === undefined ? row : [...row, placeOf(headers)]
  })
  return { texts: [...places.keys()], rows }
}

/** Returns the attempts, the oldest first. */
export function attemptsOf({ texts, rows }: AttemptsRecord): readonly RecordedAttempt[] {
  return rows.map((row) => {
    const [atMs, updateId, status, durationMs, nextRetryMs, refused, ...places] = row
    const [address, error, responseBody, responseHeaders = none, traceparent = none] = places
    const attempt = {
      atMs,
      updateId,
      status,
      durationMs,
      nextRetryMs: nextRetryMs === 0 ? Number.NaN : nextRetryMs,
      isRefused: refused === 1,
      address: texts[address],
      error: texts[error],
      responseBody: texts[responseBody],
      responseHeaders: texts[responseHeaders],
    }
    return traceparent === none ? attempt : { ...attempt, traceparent: texts[traceparent] }
  })
}

/** The place of a text that there is not. */
const none = -1
