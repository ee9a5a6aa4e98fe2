/** What the generators make and what is asked of the answers to it. */

export interface WireCase {
  /** What it is, for the report of a failure. */
  readonly name: string
  readonly bytes: Buffer
  readonly expected: Expectation
  /** Its answer has no body. */
  readonly isHead?: boolean
}

/**
 *   answer     exactly one, and the connection goes on: the request is whole
 *   refused    a 4xx or nothing at all, and the connection ends: no two servers would agree what it asks for
 *   anything   any number, each correct; the connection ends at the latest when the client ends its side
 */
export type Expectation =
  | {
      readonly kind: 'answer'
      readonly exactly?: ExactAnswer
      readonly told?: ToldResults
    }
  | { readonly kind: 'refused' }
  | { readonly kind: 'anything' }

/** What the same call in its plainest form is answered. */
export interface ExactAnswer {
  readonly status: number
  readonly body: string
  /** Instead, where the same call came a moment ago: as it does while a failure is made smaller. */
  readonly bodyIfRepeated?: string
}

/** Of the private listener: what came of it, or of each pair of a stream. */
export interface ToldResults {
  readonly status: number
  /** Codes of errors, or `filtered`. */
  readonly codes: readonly string[]
}

/** How the bytes of a conversation are written. */
export type Delivery =
  | { readonly kind: 'at once' }
  | { readonly kind: 'in turn' }
  | { readonly kind: 'byte by byte' }
  | { readonly kind: 'split'; readonly pieceBytes: number }

/**
 * What the client does in the end. `reset` and `half-close at once` come as soon as everything is written, whatever is
 * under way; a bot that half-closes is gone, a producer still gets all its answers.
 */
export type Finish = 'close' | 'half-close' | 'half-close at once' | 'reset'

/** One connection. */
export interface Conversation {
  readonly listener: 'bot' | 'private'
  /** Whole requests, and perhaps one at the end that is not. */
  readonly cases: readonly WireCase[]
  readonly delivery: Delivery
  readonly finish: Finish
}

/** The bots and keys that requests name. */
export interface World {
  /** Nothing that is generated changes anything about them: what they are answered is known. */
  readonly steady: readonly SteadyBot[]
  /** Whatever is asked of these may be done. */
  readonly loose: readonly NamedBot[]
  readonly adminKey: string
}

export interface NamedBot {
  readonly botId: number
  readonly token: string
}

export interface SteadyBot extends NamedBot {
  /** Its pending updates in wire form. */
  readonly updates: readonly string[]
  readonly me: string
}
