/** What the server says of a push, in its answer to a single one or in a line of its answer to a stream. */
import { errorIn, isRecord, parsedOrUndefined } from './answer-error.ts'
import { PostboteClientError, isServerCode } from './postbote-client-error.ts'
import type { PushResult } from './pushed-update.ts'

/** Of a single push or of a line of a stream; an error is returned, not thrown. */
export function pushOutcome(answer: unknown): PushResult | PostboteClientError {
  if (isRecord(answer)) {
    const { update_id: updateId, duplicate, filtered } = answer
    if (typeof updateId === 'number') {
      return { isFiltered: false, updateId, isDuplicate: duplicate === true }
    }
    if (filtered === true) return { isFiltered: true }
  }
  const { code, message } = errorIn(answer) ?? {}
  if (code === undefined || !isServerCode(code)) {
    return new PostboteClientError('UNEXPECTED_ANSWER', {
      message: `Expected the result of a push, got ${code === undefined ? 'something else' : `code ${code}`}`,
    })
  }
  return new PostboteClientError(code, { message })
}

/** Of a line that is no JSON, too. */
export function lineOutcome(line: string): PushResult | PostboteClientError {
  return pushOutcome(parsedOrUndefined(line))
}
