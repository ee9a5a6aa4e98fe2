/** The result of a push as a producer receives it: the response to a single push, or a line of a stream (protocol.md §9). */
import type { PushOutcome } from '../../bots/push-receipt.ts'
import { PostboteError } from '../../kit/errors.ts'
import { privateErrorText } from '../../http/reply.ts'

/**
 * Serializes a result.
 *
 * @param result - An update id, the id of a duplicate, 'filtered', or an error.
 * @returns JSON on one line, without a line end.
 */
export function pushOutcomeText(result: PushOutcome): string {
  if (typeof result === 'number') return `{"update_id":${result}}`
  if (result === 'filtered') return '{"filtered":true}'
  if (result instanceof PostboteError) return privateErrorText(result)
  return `{"update_id":${result.duplicateOf},"duplicate":true}`
}
