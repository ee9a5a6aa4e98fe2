/** The parts of a scenario: what the fake server does with each attempt, and what has to become of each push. */
import type { Job, Mode, PrintedError } from './job.ts'

/** One attempt of one push, as it reaches the fake server. */
export interface Attempt {
  readonly n: number
  /** Counts the attempts of this push, from 1. */
  readonly attempt: number
  /** Whether the push is for the first of the bots. */
  readonly isFirstBot: boolean
  /** Whether a fault is due that comes some twenty times in a run. */
  readonly isTurn: boolean
}

/** What the fake server does with a push or a call (README.md). */
export type Action =
  | { readonly kind: 'store' | 'filter' | 'end' | 'ignore' | 'garble' }
  | (Refusal & { readonly kind: 'refuse'; readonly isStored?: boolean })
  | {
      readonly kind: 'cut'
      readonly isStored: boolean
      /** Where the response ends: before its first byte, or, for a stream, in the middle of the last line. */
      readonly at: 'start' | 'line'
      /** For so long after that every connection is reset, those that are open included. */
      readonly downMs?: number
    }

/** What the fake server does with a request before it reads its body. */
export type RequestAction = Refusal | { readonly status: number; readonly html: string }

interface Refusal {
  readonly code: string
  readonly status: number
  readonly retryAfterS?: number
}

/** What has to become of a push or a call. */
export type Outcome = 'stored' | 'duplicate' | 'filtered' | PrintedError

/** A row of `scenarios`. */
export interface Scenario {
  readonly name: string
  readonly modes: readonly Mode[]
  /** Whether a long run pushes as many pairs as it can; otherwise `count`. */
  readonly isLong: boolean
  readonly count: number
  readonly job: Partial<Pick<Job, 'client' | 'stream' | 'concurrency' | 'closeMs' | 'keyPrefix'>>
  /** How often the driver runs the same job, each time at the same server. */
  readonly runs: number
  /** Whether nobody listens at the url of the job. */
  readonly isUnreachable: boolean
  /** Results are sent after so many milliseconds. */
  readonly resultDelayMs: number
  readonly action: (attempt: Attempt) => Action
  /** For the nth request, from 1. Default: all are taken. */
  readonly requestAction: (nth: number) => RequestAction | undefined
  /** For a call of mode `calls`. */
  readonly callAction: (call: string, attempt: number) => Action
  /** The outcomes of which a push may have any. */
  readonly outcomes: (n: number, mode: Mode, run: number) => readonly Outcome[]
  readonly callOutcomes: (call: string) => Outcome
  /** An update of the first bot may be overtaken by so many later ones. */
  readonly overtakenMax: number
  /** No push and no call is attempted more often. */
  readonly attemptsMax: number
  /** No more connections are open at a time. */
  readonly connectionsMax: number
  /** The code that a repetition has to be told with; undefined if there must be none. */
  readonly retryCode: string | undefined
  /** The job is done within so many milliseconds, and not before. */
  readonly elapsedMs: { readonly min: number; readonly max: number }
}
