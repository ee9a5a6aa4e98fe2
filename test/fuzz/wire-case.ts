/** What the generators produce, and what is expected of the responses. */

export interface WireCase {
  /** Describes the case in the report of a failure. */
  readonly name: string
  readonly bytes: Buffer
  readonly expected: Expectation
  /** Whether its response has no body. */
  readonly isHead?: boolean
}

/**
 *   answer     exactly one, and the connection goes on: the request is complete
 *   refused    a 4xx or nothing at all, and the connection ends: no two servers would agree what the request asks for
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

/** The response to the same call in its plainest form. */
export interface ExactAnswer {
  readonly status: number
  readonly body: string
  /** The body if the same call came a moment ago, as it does while a failure is reduced. */
  readonly bodyIfRepeated?: string
}

/** The expected result of a call of the private listener, or of each pair of a stream. */
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
 * What the client does at the end. `reset` and `half-close at once` come as soon as everything is written, whatever is
 * in progress. A bot that half-closes has left; a producer that half-closes still gets all its responses.
 */
export type Finish = 'close' | 'half-close' | 'half-close at once' | 'reset'

/** One connection. */
export interface Conversation {
  readonly listener: 'bot' | 'private'
  /** Complete requests, perhaps followed by one that is not. */
  readonly cases: readonly WireCase[]
  readonly delivery: Delivery
  readonly finish: Finish
}

/** The bots and keys that requests name. */
export interface World {
  /** No generated request changes these bots, so the responses to them are known. */
  readonly steady: readonly SteadyBot[]
  /** Any request may be carried out for these bots. */
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
