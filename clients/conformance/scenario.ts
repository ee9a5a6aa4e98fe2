/** The parts of a scenario: what the fake server does with each attempt, and what has to become of each push. */
import type { Job, Mode, PrintedError } from './job.ts'
import type { OtherPlace } from './places.ts'

/** One attempt of one push, as it reaches the fake server. */
export interface Attempt {
  readonly n: number
  /** Counts the attempts of this push, from 1. */
  readonly attempt: number
  /** Whether the push is for the first of the bots. */
  readonly isFirstBot: boolean
  /** Whether the fault is due that recurs about twenty times in a run. */
  readonly isTurn: boolean
}

/** What the fake server does with a push or a call (README.md). */
export type Action =
  | { readonly kind: 'store' | 'filter' | 'end' | 'ignore' | 'garble' | 'double' }
  | (Refusal & { readonly kind: 'refuse'; readonly isStored?: boolean })
  | {
      readonly kind: 'cut'
      readonly isStored: boolean
      /** Where the response ends: before its first byte, or, for a stream, in the middle of the last line. */
      readonly at: 'start' | 'line'
      /** Whether the response ends there as if it were complete, instead of with its connection. */
      readonly isEnded?: boolean
      /** For this many milliseconds afterwards, every connection is reset, including the open ones. */
      readonly downMs?: number
    }

/** What the fake server does with a request before it reads its body. */
export type RequestAction =
  | Refusal
  | { readonly status: number; readonly html: string }
  /** Text that is sent as it is, before the connection ends. */
  | { readonly raw: string }

/** What `GET /v1/shards` answers (docs/use/protocol.md): the shards that the server has, in groups. */
export interface ShardsMap {
  readonly shards: number
  readonly groups: readonly (readonly number[])[]
  readonly version: number
}

/** What the fake server does with `GET /v1/shards`: a response with a text or with JSON, or none ever. */
export type ShardsAction = { readonly status: number; readonly body: unknown } | 'nothing'

/** A response with an error, or a line with one. */
export interface Refusal {
  readonly code: string
  readonly status: number
  readonly retryAfterS?: number
  /** The text of the error. Default: one that names the code. */
  readonly message?: string
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
  readonly bots: readonly number[]
  readonly job: Partial<
    Pick<Job, 'client' | 'stream' | 'concurrency' | 'closeMs' | 'keyPrefix' | 'options' | 'text'>
  >
  /** How often the driver runs the same job, each time at the same server. */
  readonly runs: number
  /** What is at the url of the job. */
  readonly place: 'fake server' | OtherPlace
  /** Whether responses are sent byte by byte. */
  readonly isDripping: boolean
  /** Whether nothing says how long the response to a stream is: the end of the connection ends it. */
  readonly isOpenEnded: boolean
  /** Whether the server never reads the body of a request. */
  readonly isStalled: boolean
  /** Results are sent after this many milliseconds. */
  readonly resultDelayMs: number
  readonly action: (attempt: Attempt) => Action
  /** For the nth request, from 1, and the shard that its stream names. Default: all are taken. */
  readonly requestAction: (nth: number, shard?: string) => RequestAction | undefined
  /** For the nth `GET /v1/shards`, from 1, which counts as no request. Default: 404, like a server without the call. */
  readonly shardsAction: (nth: number) => ShardsAction
  /** Which shards streams may name: none, any, or that of the group that each of their bots has in a map. */
  readonly hints: 'none' | 'any' | ShardsMap
  /** For a call of mode `calls`. */
  readonly callAction: (call: string, attempt: number) => Action
  /** The outcomes of which a push may have any. */
  readonly outcomes: (n: number, mode: Mode, run: number) => readonly Outcome[]
  readonly callOutcomes: (call: string) => Outcome
  /** At most this many later updates may overtake an update of the first bot. */
  readonly overtakenMax: number
  /** The largest number of attempts of a push or a call. */
  readonly attemptsMax: number
  /** The largest number of connections that are open at a time. */
  readonly connectionsMax: number
  /** The code of a retry that the client must report; undefined if it must not retry. */
  readonly retryCode: string | undefined
  /** The client may report so many retries. */
  readonly retriesMax: number
  /** The shortest and the longest time that the job may take, in milliseconds. */
  readonly elapsedMs: { readonly min: number; readonly max: number }
}
