/** What a producer is told of a push: the answer of a single one, or its line in a stream (SPEC 9). */
import type { PushResult } from '../bots/bot-service.ts'
import { PostboteError } from '../errors.ts'
import { privateErrorText } from './private-error.ts'

export function pushResultText(result: PushResult): string {
  if (typeof result === 'number') return `{"update_id":${result}}`
  if (result === 'filtered') return '{"filtered":true}'
  if (result instanceof PostboteError) return privateErrorText(result)
  return `{"update_id":${result.duplicateOf},"duplicate":true}`
}
