/** What a simulated cluster that places shards is drawn from. */

/** What the database does with a statement, in a period of trouble. */
export type Outage = 'away' | 'refusing' | 'cut'

/** What happens to a node. */
export type Trouble = 'kill' | 'start' | 'drain' | 'undrain'

export interface PlacementWorldOptions {
  readonly seed: number
  readonly nodes: number
  readonly shards: number
  readonly chaosMs: number
  readonly endMs: number
  readonly drift: number
  readonly delayMsMax: number
  /** After this long, a node takes a statement for failed. It may be executed later. */
  readonly timeoutMs: number
  readonly lost: number
  /** How likely a statement or an answer takes up to `lateMsMax` longer. */
  readonly late: number
  readonly doubled: number
  /** How likely a node is paused before each of its steps, and for how long at most. */
  readonly paused: number
  readonly pauseMsMax: number
  readonly outages: readonly {
    readonly fromMs: number
    readonly toMs: number
    readonly kind: Outage
  }[]
  /** How often a node is killed, started, drained or undrained. */
  readonly troubleMs: number
  /** How likely a node cannot open any shard until 25 s after the chaos. */
  readonly inept: number
  readonly troubles: readonly Trouble[]
}
