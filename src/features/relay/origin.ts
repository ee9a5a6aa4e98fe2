/**
 * The bot API server from which a relay takes updates, as a relay sees it, and what relays need from a server with
 * `--relay-from` (relay-origins.ts implements it).
 */

/** Either what is stored beside the text of an update, or why it cannot be stored. */
export type UpdateVerdict =
  | { readonly typeNumber: number; readonly orderingKey: string }
  | { readonly reason: string }

/** An update as an origin sent it. */
export interface OriginUpdate {
  readonly updateId: number
  /** The update without its id, as JSON; undefined if it is not exactly one type with its value. */
  readonly update: Buffer | undefined
  /** What the check of `update` has found. */
  readonly verdict: UpdateVerdict | undefined
  /** As it came. */
  readonly raw: Buffer
  /** Whether `raw` is only the beginning of an update that is too large to be read. */
  readonly isCut?: true
}

/** What a poll asks for. */
export interface OriginPoll {
  /** A secret. */
  readonly token: string
  /** The first update that is wanted, which confirms all before it; undefined for everything that the origin has. */
  readonly offset: number | undefined
  /** The names of the types that are wanted. */
  readonly types: readonly string[]
  /** The maximum number of updates. */
  readonly limit: number
  /** How long to wait for an update, in seconds. */
  readonly waitS: number
}

/** Why a poll has brought nothing. */
export interface OriginFailure {
  /** One sentence for people, without a secret. */
  readonly reason: string
  /** How long the origin asks to wait. */
  readonly retryAfterMs?: number | undefined
  /** Whether it may be over at once, so that the first one is not reported: a broken connection, or a failure within the origin. */
  readonly isPassing?: boolean
  /** Whether only polls that wait are refused like this. */
  readonly isOfWaiting?: boolean
  /** Whether the answer was too large, so that the next poll may ask for fewer updates. */
  readonly isTooLarge?: boolean
}

/** What a poll has brought. */
export type OriginAnswer =
  | { readonly updates: readonly OriginUpdate[] }
  | { readonly failure: OriginFailure }

/** A server that `--relay-from` lists. */
export interface Origin {
  /**
   * Calls getUpdates once, and passes what it brings to `take`. Few large answers are in memory at a time; the others wait.
   *
   * @returns what `take` returns
   * @throws only what `take` throws, or the reason of the signal
   */
  poll<Result>(
    poll: OriginPoll,
    take: (answer: OriginAnswer) => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result>
}

/** An update that no queue can store. */
export interface RefusedUpdate extends Omit<OriginUpdate, 'verdict'> {
  readonly reason: string
}

export interface RelayServices {
  /** Returns a server that `--relay-from` lists. */
  originOf(from: string): Origin | undefined
  sealToken(token: string): string
  /** Returns the token; undefined if it was sealed with another admin key. */
  openToken(sealed: string): string | undefined
}
