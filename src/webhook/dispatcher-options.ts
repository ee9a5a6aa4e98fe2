/** What a dispatcher needs from its bot and its worker. */
import type { AttemptLog } from './attempt-log.ts'
import type { AttemptRecorderOptions } from './attempt-recorder.ts'
import type { Connection, ConnectionOptions } from './connection.ts'
import type { ConnectionSetOptions } from './connection-set.ts'
import type { DeliveryLimit, DeliveryPace } from './delivery-pace.ts'
import type { DeliverySource } from './delivery-source.ts'
import type { LoadedBytes } from './loaded-bytes.ts'
import type { DeliveryState, DeliveryStateOptions } from './state.ts'

/** Parts of a dispatcher that a simulation replaces to watch them or to set smaller limits. */
export interface DispatcherParts {
  readonly createState: (options: DeliveryStateOptions) => DeliveryState
  readonly createConnection: (options: ConnectionOptions) => Connection
  readonly createPace: (limit: DeliveryLimit | undefined) => DeliveryPace
}

/** What a dispatcher decides about its connections, at least if nobody says otherwise. */
type DecidedByDispatcher =
  | 'endpoint'
  | 'pace'
  | 'owner'
  | 'createConnection'
  | 'connectTimeoutMs'
  | 'responseTimeoutMs'
  | 'keepAliveMs'

export interface DispatcherOptions
  extends AttemptRecorderOptions,
    Omit<ConnectionSetOptions, DecidedByDispatcher> {
  readonly source: DeliverySource
  readonly goneTimeoutMs: number
  /** Counts the loaded updates of all dispatchers; if absent, those of this one count for themselves. */
  readonly loaded?: LoadedBytes | undefined
  /** The limit that the operator has set; if absent, there is none. */
  readonly limit?: DeliveryLimit | undefined
  /** The endpoint has returned 410 for longer than the timeout. Nothing is sent any more; `close` must still be called. */
  onGone(): void
  /** The start of the 410 clock, to be persisted; undefined when the clock was stopped. */
  onGoneClock(sinceMs: number | undefined): void
  /** The log of attempts. It outlives this dispatcher. */
  readonly attempts?: AttemptLog | undefined
  readonly connectTimeoutMs?: number | undefined
  readonly responseTimeoutMs?: number | undefined
  readonly keepAliveMs?: number | undefined
  readonly parts?: DispatcherParts | undefined
}
