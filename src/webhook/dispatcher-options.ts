/** What a dispatcher needs from its bot and its worker. */
import type { Clock } from '../clock.ts'
import type { Lease } from '../lease.ts'
import type { AttemptLog } from './attempt-log.ts'
import type { AttemptRecorderOptions } from './attempt-recorder.ts'
import type { Connection, ConnectionOptions } from './connection.ts'
import type { DeliveryLimit, DeliveryPace } from './delivery-pace.ts'
import type { DeliverySource } from './delivery-source.ts'
import type { ServerGate } from './flood-gate.ts'
import type { KnownAddresses } from './known-addresses.ts'
import type { LoadedBytes } from './loaded-bytes.ts'
import type { ReplyIntake } from './reply-reader.ts'
import type { SignatureSource } from './signature.ts'
import type { DeliveryState, DeliveryStateOptions } from './state.ts'
import type { WebhookNetwork } from './verify.ts'
import type { WebhookSettings } from './webhook-settings.ts'

/** Parts of a dispatcher that a simulation replaces to watch them or to set smaller limits. */
export interface DispatcherParts {
  readonly createState: (options: DeliveryStateOptions) => DeliveryState
  readonly createConnection: (options: ConnectionOptions) => Connection
  readonly createPace: (limit: DeliveryLimit | undefined) => DeliveryPace
}

export interface DispatcherOptions extends AttemptRecorderOptions {
  readonly settings: WebhookSettings
  readonly source: DeliverySource
  /** The known addresses of the host. They outlive this dispatcher. */
  readonly addresses?: KnownAddresses | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly network: WebhookNetwork
  readonly secretHeaderNames: readonly string[]
  readonly signing?: SignatureSource | undefined
  /** Receives successful responses that name a method; if absent, they are not read. */
  readonly replies?: ReplyIntake | undefined
  readonly goneTimeoutMs: number
  readonly serverGate: ServerGate
  /** Counts the loaded updates of all dispatchers; if absent, those of this one count for themselves. */
  readonly loaded?: LoadedBytes | undefined
  /** The limit that the operator has set; if absent, there is none. */
  readonly limit?: DeliveryLimit | undefined
  /** If absent, no other server can deliver these updates. */
  readonly lease?: Lease | undefined
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
