import type { PostboteClientError } from './postbote-client-error.ts'
import type { PushResult } from './pushed-update.ts'

/** A push of a stream that has no result yet. */
export interface Pair {
  /** Position in the order of pushes, from 0. */
  readonly nth: number
  readonly botId: number
  /** The queue of the bot that the pair is for: the bot id, with `/test` for the /test/ queue. */
  readonly queue: string
  /** Both lines, each with its line end. */
  readonly text: string
  readonly bytes: number
  /** Whether sending the pair again stores nothing twice, because it has an idempotency key. */
  readonly isRepeatable: boolean
  /** How often the server refused the pair. */
  refusals: number
  /** Whether an earlier attempt may have stored the update. */
  mayBeStored: boolean
  readonly resolve: (result: PushResult) => void
  readonly reject: (error: PostboteClientError) => void
}
