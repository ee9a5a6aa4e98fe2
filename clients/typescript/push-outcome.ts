/** Interprets the server's result of a push: the response to a single call or a line of the response to a stream. */
import { errorIn, isRecord, parsedOrUndefined } from './response-error.ts'
import { PostboteClientError, isServerCode } from './postbote-client-error.ts'
import type { PushResult } from './pushed-update.ts'

/**
 * Converts the parsed JSON of a response or of a line into a result.
 *
 * @param response - The parsed JSON; undefined if it was not JSON.
 * @returns The result, or the error, which the caller throws or handles: the server's code, or UNEXPECTED_ANSWER.
 */
export function pushOutcome(response: unknown): PushResult | PostboteClientError {
  if (isRecord(response)) {
    const { update_id: updateId, duplicate, filtered } = response
    if (typeof updateId === 'number') {
      return { isFiltered: false, updateId, isDuplicate: duplicate === true }
    }
    if (filtered === true) return { isFiltered: true }
  }
  const { code, message } = errorIn(response) ?? {}
  if (code === undefined || !isServerCode(code)) {
    return new PostboteClientError('UNEXPECTED_ANSWER', {
      message: `Expected the result of a push, got ${code === undefined ? 'something else' : `code ${code}`}`,
    })
  }
  return new PostboteClientError(code, { message })
}

/** Converts a line of a stream's response into a result. A line that is not JSON is an UNEXPECTED_ANSWER. */
export function lineOutcome(line: string): PushResult | PostboteClientError {
  return pushOutcome(parsedOrUndefined(line))
}
