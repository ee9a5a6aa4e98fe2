import type { PostboteClientError } from './postbote-client-error.ts'
import type { PushResult } from './pushed-update.ts'

/** A push of a stream that has no result yet. */
export interface Pair {
  /** In the order of pushes. */
  readonly nth: number
  readonly botId: number
  /** Which of the bot's queues it is for, as text. */
  readonly queue: string
  /** Both lines. */
  readonly text: string
  readonly bytes: number
  /** Sending it again would store nothing again: it has an idempotency key. */
  readonly isRepeatable: boolean
  /** How often it was refused for a moment. */
  refusals: number
  /** It was sent before, and what became of it then is not known. */
  mayBeStored: boolean
  readonly resolve: (result: PushResult) => void
  readonly reject: (error: PostboteClientError) => void
}
